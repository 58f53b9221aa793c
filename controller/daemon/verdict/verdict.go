package verdict

import (
	"errors"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

// Of judges a job file as read by parse. The error is the one behind Verdict.Errors, nil where the
// file is valid; a file without a stanza is.
func Of(parse detect.Parser, filename string, source []byte, variables map[string]string) (api.Verdict, error) {
	v := api.Verdict{File: filename}
	file, err := parse(filename, source, variables)
	var policy tuning.Policy
	if err == nil {
		policy, err = stanza.Policy(file)
	}
	var faults jobfile.Errors
	switch {
	case errors.Is(err, stanza.ErrNone):
		v.Valid, v.Note = true, "no tuning stanza, so this job is left alone"
		return v, nil
	case err == nil:
		v.Valid, v.Policy, v.Note, v.Text = true, &policy, "valid", stanza.Print(policy)
		return v, nil
	case errors.As(err, &faults):
		for _, f := range faults {
			v.Errors = append(v.Errors, api.Fault{
				File: f.Pos.Filename, Line: f.Pos.Line, Column: f.Pos.Column, Found: f.Found, Want: f.Want,
			})
		}
	default:
		v.Errors = []api.Fault{{File: filename, Found: err.Error()}}
	}
	return v, err
}
