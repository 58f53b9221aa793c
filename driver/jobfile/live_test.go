package jobfile_test

import (
	"testing"

	"pitchpipe/driver/jobfile/detect"
)

func TestAStanzaWithALiveKnob(t *testing.T) {
	t.Parallel()
	nomad := func(knob string) string {
		return `job "a" {
  type = "batch"
  group "g" {
    tuning {
      knob "lr" {
        ` + knob + `
      }
    }
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/true" }
    }
  }
}`
	}
	for _, tt := range []struct {
		name, file, source string
		want               bool
	}{
		{"a script without a stanza", "job.sh", "#!/bin/sh\nexit 0\n", false},
		{"a script with a variable", "job.sh", "#!/bin/sh\n#TUNE knob lr env=LR values=1,2\nexit 0\n", false},
		{"a script with a live knob", "job.sh", "#!/bin/sh\n#TUNE knob lr live=true values=1,2\nexit 0\n", true},
		{"a script with a knob that is not live", "job.sh", "#!/bin/sh\n#TUNE knob lr env=LR live=false values=1,2\nexit 0\n", false},
		{"a Nomad job with a live knob", "job.nomad.hcl", nomad("live = true"), true},
		{"a Nomad job with a knob that is not live", "job.nomad.hcl", nomad("live = false"), false},
		{"a Nomad job with a flag", "job.nomad.hcl", nomad(`arg = "--lr"`), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job, err := detect.Parse(tt.file, []byte(tt.source), nil)
			if err != nil {
				t.Fatal(err)
			}
			if job.Live() != tt.want {
				t.Errorf("Live() = %v, want %v", job.Live(), tt.want)
			}
		})
	}
}
