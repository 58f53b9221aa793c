package verdict_test

import (
	"errors"
	"testing"

	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

func TestAJobFileIsJudged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		valid      bool
		faults     int
		line       int // of the first
	}{
		{"without a stanza", "#!/bin/sh\n", true, 0, 0},
		{"with one", "#!/bin/sh\n#TUNE mode=observe\n", true, 0, 0},
		{"with faults, all at once", "#!/bin/sh\n#TUNE mood=observe\n#TUNE objective=speed\n", false, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, err := verdict.Of(detect.Parse, "job.sh", []byte(c.text), nil)
			if v.Valid != c.valid || (err == nil) != c.valid || len(v.Errors) != c.faults || v.File != "job.sh" {
				t.Fatalf("%+v (%v)", v, err)
			}
			if c.faults > 0 {
				var all jobfile.Errors
				if f := v.Errors[0]; !errors.As(err, &all) || f.Line != c.line || f.Column == 0 || f.Found == "" || f.Want == "" {
					t.Errorf("%+v (%v)", f, err)
				}
			}
			if has := v.Policy != nil; has != (v.Note == "valid") || has && (v.Policy.Mode != tuning.Observe || v.Text == "") {
				t.Errorf("%+v", v)
			}
		})
	}
}
