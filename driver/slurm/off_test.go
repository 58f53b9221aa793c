package slurm_test

import (
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/slurmctl"
)

func TestAJobThatIsSubmittedUntunedSaysSoFromTheBeginning(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, script string
		off          bool
		begin        time.Time
		comment      string
	}{
		{"with a comment of its own", "#!/bin/sh\n#SBATCH --comment=mine\n#TUNE mode=apply\ntrue\n", true, time.Time{}, "mine " + slurmctl.Off},
		{"with none", "#!/bin/sh\n#TUNE mode=apply\ntrue\n", true, time.Time{}, slurmctl.Off},
		{"with a head start", "#!/bin/sh\n#TUNE mode=apply\ntrue\n", true, time.Now().Add(time.Hour), slurmctl.HeadStart + " " + slurmctl.Off},
		{"where it may be tuned", "#!/bin/sh\n#TUNE mode=apply\ntrue\n", false, time.Time{}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			spec := driver.Spec{Filename: "job.sh", Source: []byte(tc.script), Off: tc.off, NotBefore: tc.begin}
			file, err := detect.For("slurm")(spec.Filename, spec.Source, nil)
			if err != nil {
				t.Fatal(err)
			}
			id, err := slurm.Submit(t.Context(), r.f, file, spec)
			if err != nil {
				t.Fatal(err)
			}
			if job := r.job(t, id); job.Off != tc.off {
				t.Errorf("off is %v, want %v", job.Off, tc.off)
			}
			r.f.with(id, func(j *fakeJob) {
				if j.comment != tc.comment {
					t.Errorf("comment %q, want %q", j.comment, tc.comment)
				}
			})
		})
	}
}
