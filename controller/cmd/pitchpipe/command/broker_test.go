package command

import (
	"reflect"
	"testing"

	"pitchpipe/driver/slurm/broker"
)

func TestWhatCountsOfAStanzaForTheBroker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		want         broker.Stanza
		bad          bool
	}{
		{
			name:   "a checkpoint by a signal and a status",
			script: "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob cores values=1,2\n#TUNE checkpoint signal=USR2 grace=60s exit=85\ntrue\n",
			want:   broker.Stanza{Apply: true, Signal: "SIGUSR2", Exit: 85, Cores: broker.Knob{Values: []int64{1, 2}}},
		},
		{
			name:   "ranges, and memory that is no whole number of MiB",
			script: "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob cores min=1 max=8\n#TUNE knob memory values=1MB,4GiB\ntrue\n",
			want:   broker.Stanza{Apply: true, Cores: broker.Knob{Min: 1, Max: 8}, Memory: broker.Knob{Values: []int64{1 << 20, 4 << 30}}},
		},
		{
			name:   "a range of memory",
			script: "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob memory min=1MiB max=2MB\ntrue\n",
			want:   broker.Stanza{Apply: true, Memory: broker.Knob{Min: 1 << 20, Max: 2 << 20}},
		},
		{
			name:   "both signs of a checkpoint",
			script: "#!/bin/sh\n#TUNE mode=apply\n#TUNE checkpoint done=saved exit=85\ntrue\n", want: broker.Stanza{Apply: true, Signal: "SIGUSR1", Exit: 85, Done: true},
		},
		{
			name:   "a checkpoint by a line",
			script: "#!/bin/sh\n#TUNE mode=apply\n#TUNE checkpoint done=saved\ntrue\n", want: broker.Stanza{Apply: true, Signal: "SIGUSR1", Done: true},
		},
		{name: "no checkpoint", script: "#!/bin/sh\n#TUNE mode=apply\ntrue\n", want: broker.Stanza{Apply: true}},
		{name: "a mode that changes nothing", script: "#!/bin/sh\n#TUNE mode=recommend\ntrue\n"},
		{name: "an unknown key", script: "#!/bin/sh\n#TUNE mod=apply\ntrue\n", bad: true},
		{name: "no stanza", script: "#!/bin/sh\n# mode=apply\ntrue\n", bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fromScript, err := writtenStanza("train.sbatch", []byte(c.script))
			if !reflect.DeepEqual(fromScript, c.want) || (err != nil) != c.bad {
				t.Errorf("the script gives %+v, %v; want %+v, an error: %t", fromScript, err, c.want, c.bad)
			}
		})
	}
}

func TestTheBrokersAccountsMustBeThere(t *testing.T) {
	t.Parallel()
	if got, err := uids([]string{"root"}); err != nil || len(got) != 1 || got[0] != 0 {
		t.Errorf("root is %v (%v), want 0", got, err)
	}
	if _, err := uids([]string{"no-such-account"}); err == nil {
		t.Error("an account that is not there was found")
	}
}
