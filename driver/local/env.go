package local

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/local/supervise"
	"pitchpipe/driver/move"
)

// environment makes what the attempt that runs finds. What a Nomad job file sets
// is interpolated from all that Nomad itself would set.
func environment(r *record, base map[string]string, s store) map[string]string {
	env := maps.Clone(base)
	if r.User != nil {
		env["HOME"], env["USER"], env["LOGNAME"] = r.Home, r.Job.Owner, r.Job.Owner
		delete(env, "TMPDIR")
	}
	own := map[string]string{
		supervise.JobVariable:     string(r.Job.ID),
		supervise.AttemptVariable: strconv.Itoa(r.Job.Attempt),
	}
	switch r.File.Format {
	case jobfile.Sbatch:
		r.slurm(own)
	case jobfile.NomadHCL, jobfile.NomadJSON:
		r.nomad(own, s)
		known := maps.Clone(env)
		maps.Copy(known, own)
		for name, text := range r.File.Env {
			env[name] = interpolate(text, known, r.Job.Node)
		}
	}
	maps.Copy(env, r.Env)
	maps.Copy(env, r.Job.Change.Env)
	maps.Copy(env, own)
	delete(env, driver.SettingsVariable)
	if r.live() {
		env[driver.SettingsVariable] = s.settings(r.Job.ID)
	}
	return env
}

func (r *record) slurm(env map[string]string) {
	want := r.want(r.Job.Change)
	env["SLURM_JOB_ID"] = string(r.Job.ID)
	env["SLURM_JOB_NAME"] = r.Job.Name
	env["SLURM_CPUS_PER_TASK"] = strconv.Itoa(want.Cores)
	env["SLURM_CPUS_ON_NODE"] = strconv.Itoa(want.Cores)
	env["SLURM_RESTART_COUNT"] = strconv.Itoa(r.Job.Attempt - 1)
	env["SLURM_SUBMIT_DIR"] = r.Dir
	if want.Memory > 0 {
		env["SLURM_MEM_PER_NODE"] = strconv.FormatInt(want.Memory>>20, 10)
	}
}

// checkChange refuses a change that no attempt of the job can have.
func (d *Driver) checkChange(r *record, c driver.Change) error {
	if err := move.JudgeChange(c); err != nil {
		return err
	}
	if err := d.Fits(r.want(c)); err != nil {
		return err
	}
	for name := range c.Env {
		if at, fixed := r.File.Fixed[name]; fixed {
			return fmt.Errorf("%s: the script sets %s itself; it can be changed where it is written ${%s:-...}: %w",
				at, name, name, driver.ErrUnsupported)
		}
	}
	if len(c.Args) > 0 && len(r.File.Argv) == 0 {
		return fmt.Errorf("a batch script has no command line to change: %w", driver.ErrUnsupported)
	}
	for flag := range c.Args {
		if flag == "" || strings.ContainsAny(flag, "=\x00") {
			return fmt.Errorf("argument %q: %w", flag, driver.ErrInvalid)
		}
	}
	return nil
}
