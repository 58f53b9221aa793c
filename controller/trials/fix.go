package trials

import (
	"fmt"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

// FixOf is what makes the job file of a search run settings as an ordinary job, without the search and
// without the knobs that it varied. The error is driver.ErrInvalid or driver.ErrUnsupported.
func FixOf(p tuning.Policy, s tuning.Settings) (jobfile.Fix, error) {
	c, err := reconcile.Change(p, nil, p.Complete(s))
	switch {
	case err != nil:
		return jobfile.Fix{}, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	case len(c.Live) > 0:
		return jobfile.Fix{}, fmt.Errorf("a live knob of a search: want one with env or arg: %w", driver.ErrUnsupported)
	}
	rest := p.Trial()
	fix := jobfile.Fix{Env: c.Env, Args: c.Args, Cores: c.Cores, Mode: string(rest.Mode)}
	for _, k := range p.Knobs {
		if _, stays := rest.Knob(k.Name); !stays {
			fix.Knobs = append(fix.Knobs, k.Name)
		}
	}
	return fix, nil
}

// with is the job file of a trial: what its environment does not carry is written into it.
func (f JobFile) with(fix jobfile.Fix) (JobFile, error) {
	if len(fix.Args) == 0 && fix.Cores == 0 {
		return f, nil
	}
	var err error
	f.Source, err = detect.Fix(f.Filename, f.Source, f.Variables, jobfile.Fix{Args: fix.Args, Cores: fix.Cores, Search: true})
	if err != nil {
		return f, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	return f, nil
}
