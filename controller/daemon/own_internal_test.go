package daemon

import (
	"testing"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
)

func TestTheSchedulersRecordOverridesTheJobFile(t *testing.T) {
	t.Parallel()
	const stanzaLines = "#TUNE mode=apply\n#TUNE knob cores values=1,2,4,8\n#TUNE knob threads env=OMP_NUM_THREADS follows=cores\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n"
	for name, c := range map[string]struct {
		script string
		asked  driver.Resources
		want   map[string]float64
	}{
		"an option of the command line": {"", driver.Resources{Cores: 4, MemoryBytes: 1 << 30}, map[string]float64{tuning.Cores: 4, tuning.Threads: 4, tuning.Memory: 1 << 30}},
		"an option that asks for less":  {"#SBATCH -c 8\n", driver.Resources{Cores: 2}, map[string]float64{tuning.Cores: 2, tuning.Threads: 2}},
		"memory by CPU, with its CPUs": {
			"#SBATCH --mem-per-cpu=100M\n",
			driver.Resources{Cores: 4, MemoryBytes: 400 << 20},
			map[string]float64{tuning.Cores: 4, tuning.Threads: 4, tuning.Memory: 400 << 20},
		},
		"no limit of memory, whatever the file says": {"#SBATCH -c 2 --mem=1G\n", driver.Resources{Cores: 2}, map[string]float64{tuning.Cores: 2, tuning.Threads: 2}},
		"where the scheduler does not say the file counts": {
			"#SBATCH -c 2 --mem=1G\n", driver.Resources{}, map[string]float64{tuning.Cores: 2, tuning.Threads: 2, tuning.Memory: 1 << 30},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := detect.For("slurm")("a.sbatch", []byte("#!/bin/sh\n"+c.script+stanzaLines), nil)
			if err != nil {
				t.Fatal(err)
			}
			policy, err := stanza.Policy(file)
			if err != nil {
				t.Fatal(err)
			}
			got := own(driver.Job{Resources: c.asked}, file, policy)
			if len(got) != len(c.want) {
				t.Errorf("settings %s, want %v", got, c.want)
			}
			for knob, want := range c.want {
				if got[knob].Float() != want {
					t.Errorf("%s is %s, want %g", knob, got[knob], want)
				}
			}
		})
	}
}
