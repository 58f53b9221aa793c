package broker

import (
	"bytes"
	"context"
	"fmt"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/sbatch"
	"pitchpipe/driver/slurm/slurmctl"
)

// scriptOf is the script of a job, and whether the submission plugin marked it: it accepted a
// stanza in the script, and wrote its word into the AdminComment (an older plugin also the
// stanza after it). Without a plugin (Config.Scripts) the job's comment may have a stanza too.
func (s *Server) scriptOf(ctx context.Context, j sighting) (script []byte, marked bool, err error) {
	if marked = slurmctl.HasStanza(j.Job); !marked && !s.cfg.Scripts {
		return nil, false, fmt.Errorf("the site's submission plugin accepted no stanza of it: %w", driver.ErrDenied)
	}
	if script, err = slurmctl.ScriptOf(ctx, s.cfg.Actor, j.name, j.ID); err != nil {
		return nil, false, fmt.Errorf("its script cannot be read: %w", err)
	}
	return script, marked, nil
}

func (s *Server) stanza(ctx context.Context, j sighting) (Stanza, error) {
	script, marked, err := s.scriptOf(ctx, j)
	if err != nil {
		return Stanza{}, err
	}
	if !marked { // the plugin reads scripts alone
		script = sbatch.WithComment(script, j.Comment)
	}
	st, err := s.cfg.Script(j.Name, script)
	if err != nil {
		return Stanza{}, fmt.Errorf("its script has no good stanza: %w: %w", driver.ErrDenied, err)
	}
	return st, nil
}

// script hands out the script of a job that has a stanza, whatever its mode and its
// shape: the controller shows it and learns from it. Without a plugin it hands out the first
// line of any other job, so that the controller sees that there is nothing for it.
func (s *Server) script(ctx context.Context, id string) ([]byte, error) {
	j, err := s.look(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case j.uid == 0:
		return nil, fmt.Errorf("root's jobs are not touched: %w", driver.ErrDenied)
	case !j.Batch:
		return nil, fmt.Errorf("it has no script: %w", driver.ErrUnsupported)
	}
	script, marked, err := s.scriptOf(ctx, j)
	if err != nil || marked || bytes.Contains(sbatch.WithComment(script, j.Comment), []byte("#TUNE")) {
		return script, err
	}
	first, _, _ := bytes.Cut(script, []byte("\n"))
	return append(bytes.Clone(first), '\n'), nil
}
