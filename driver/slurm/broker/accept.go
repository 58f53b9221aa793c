package broker

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/sbatch"
	"pitchpipe/driver/slurm/slurmctl"
)

// recorded reports whether the submission plugin wrote its word into the AdminComment of a
// job: it accepted a stanza in the job's script. An older plugin wrote the stanza behind it.
func recorded(adminComment string) bool {
	return slices.ContainsFunc(strings.Fields(adminComment), func(word string) bool { return strings.HasPrefix(word, "pitchpipe:1:") })
}

// stanza is the accepted stanza of a job.
func (s *Server) stanza(ctx context.Context, j sighting) (Stanza, error) {
	marked := recorded(j.AdminComment)
	if !marked && !s.cfg.Scripts {
		return Stanza{}, fmt.Errorf("the site's submission plugin accepted no stanza of it: %w", driver.ErrDenied)
	}
	script, err := slurmctl.ScriptOf(ctx, s.cfg.Actor, j.name, j.ID)
	if err != nil {
		return Stanza{}, fmt.Errorf("its script cannot be read: %w", err)
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
// shape: the controller shows it and learns from it. Of any other job, where there is no
// plugin, it is the first line, so that the controller sees that there is nothing for it.
func (s *Server) script(ctx context.Context, id string) ([]byte, error) {
	j, err := s.look(ctx, id)
	if err != nil {
		return nil, err
	}
	marked := recorded(j.AdminComment)
	switch {
	case j.uid == 0:
		return nil, fmt.Errorf("root's jobs are not touched: %w", driver.ErrDenied)
	case !j.Batch:
		return nil, fmt.Errorf("it has no script: %w", driver.ErrUnsupported)
	case !marked && !s.cfg.Scripts:
		return nil, fmt.Errorf("the site's submission plugin accepted no stanza of it: %w", driver.ErrDenied)
	}
	script, err := slurmctl.ScriptOf(ctx, s.cfg.Actor, j.name, j.ID)
	if err != nil || marked {
		return script, err
	}
	if bytes.Contains(sbatch.WithComment(script, j.Comment), []byte("#TUNE")) {
		return script, nil
	}
	first, _, _ := bytes.Cut(script, []byte("\n"))
	return append(bytes.Clone(first), '\n'), nil
}
