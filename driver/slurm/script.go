package slurm

import (
	"context"
	"fmt"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/sbatch"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// text is what a job's script says.
type text struct {
	key         string // of the job that has it: numbers come round
	script      []byte
	fingerprint string
	command     string
	env         map[string]string
	fixed       map[string]jobfile.Pos
}

// textKey distinguishes a job from another that has its number later, and what its owner
// says in its comment from what he said before.
func textKey(j parse.Job) string {
	return j.Command + "\x00" + j.Name + "\x00" + j.WorkDir + "\x00" + string(sbatch.WithComment(nil, j.Comment))
}

// known returns what is known of a job's script without asking Slurm.
func (d *Driver) known(j parse.Job, r *Record) (text, bool) {
	id := scriptID(j)
	d.mu.Lock()
	t, ok := d.texts[id]
	d.mu.Unlock()
	switch {
	case ok && (t.key == textKey(j) || r != nil && string(t.script) == string(r.Script)):
		return t, true
	case r != nil:
		return d.learn(j, r.Script), true
	}
	return text{}, false
}

// script reads a job's batch script, where it is not known. Jobs that were not
// submitted with sbatch have none.
func (d *Driver) script(ctx context.Context, j parse.Job, r *Record) (text, error) {
	if t, ok := d.known(j, r); ok || !j.Batch {
		return t, nil
	}
	out, err := slurmctl.ScriptOf(ctx, d.cfg.Actor, string(nameOf(j)), j.ID)
	if err != nil {
		return text{}, fmt.Errorf("script of job %s: %w", nameOf(j), err)
	}
	return d.learn(j, sbatch.WithComment(out, j.Comment)), nil
}

// learn keeps what a script says. A script that this module cannot read is a job
// without a stanza: its reader says so to whoever asks for it.
func (d *Driver) learn(j parse.Job, script []byte) text {
	t := text{key: textKey(j), script: script, fingerprint: fingerprint(script)}
	if file, err := d.cfg.Parse(j.Name, script, nil); err == nil {
		t.command, t.env, t.fixed = file.Command, file.Env, file.Fixed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.texts[scriptID(j)] = t
	return t
}

// fingerprint is equal for equal scripts. Slurm ends the last line where its
// author did not.
func fingerprint(script []byte) string {
	if n := len(script); n > 0 && script[n-1] != '\n' {
		script = append(script[:n:n], '\n')
	}
	return driver.Fingerprint(script, nil)
}
