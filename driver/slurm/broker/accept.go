package broker

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/sbatch"
	"pitchpipe/driver/slurm/act"
)

// prefix begins the word that the submission plugin writes into the AdminComment of a
// job whose stanza it accepted.
const prefix = "pitchpipe:1:"

// recorded is the plugin's record of a stanza: JSON, or - where that was too long.
func recorded(adminComment string) (string, bool) {
	for word := range strings.FieldsSeq(adminComment) {
		if text, ok := strings.CutPrefix(word, prefix); ok {
			return text, true
		}
	}
	return "", false
}

// stanza is the accepted stanza of a job.
func (s *Server) stanza(ctx context.Context, j sighting) (Stanza, error) {
	text, ok := recorded(j.AdminComment)
	switch {
	case !ok && !s.cfg.Scripts:
		return Stanza{}, fmt.Errorf("the site's submission plugin accepted no stanza of it: %w", driver.ErrDenied)
	case ok && text != "-":
		st, err := s.cfg.Record([]byte(text))
		if err != nil {
			return Stanza{}, fmt.Errorf("the stanza that is recorded with it is not good: %w: %w", driver.ErrDenied, err)
		}
		return st, nil
	}
	script, err := act.ScriptOf(ctx, s.cfg.Actor, j.name, j.ID)
	if err != nil {
		return Stanza{}, fmt.Errorf("its script cannot be read: %w", err)
	}
	st, err := s.cfg.Script(j.Name, sbatch.WithComment(script, j.Comment))
	if err != nil {
		return Stanza{}, fmt.Errorf("its script has no good stanza: %w: %w", driver.ErrDenied, err)
	}
	return st, nil
}

// script hands out the script of a job that has a stanza, whatever its mode and its
// shape: the controller shows it and learns from it. Of any other job, where no plugin
// tells, it is the first line, so that the controller sees that there is nothing for it.
func (s *Server) script(ctx context.Context, id string) ([]byte, error) {
	j, err := s.look(ctx, id)
	if err != nil {
		return nil, err
	}
	_, marked := recorded(j.AdminComment)
	switch {
	case j.uid == 0:
		return nil, fmt.Errorf("root's jobs are not touched: %w", driver.ErrDenied)
	case !j.Batch:
		return nil, fmt.Errorf("it has no script: %w", driver.ErrUnsupported)
	case !marked && !s.cfg.Scripts:
		return nil, fmt.Errorf("the site's submission plugin accepted no stanza of it: %w", driver.ErrDenied)
	}
	script, err := act.ScriptOf(ctx, s.cfg.Actor, j.name, j.ID)
	if err != nil || marked {
		return script, err
	}
	if bytes.Contains(sbatch.WithComment(script, j.Comment), []byte("#TUNE")) {
		return script, nil
	}
	first, _, _ := bytes.Cut(script, []byte("\n"))
	return append(bytes.Clone(first), '\n'), nil
}
