package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/slurm/journal"
	"pitchpipe/driver/slurm/parse"
)

// What the TaskProlog takes; it refuses the whole file where there is more.
const (
	maxSettings = 64
	maxSetting  = 1024 // bytes of a line
)

// judgeEnv refuses what has no place in the file that the TaskProlog reads.
func judgeEnv(env map[string]string) error {
	if len(env) > maxSettings {
		return fmt.Errorf("%d variables, more than %d: %w", len(env), maxSettings, driver.ErrInvalid)
	}
	for name, value := range env {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) {
			return fmt.Errorf("the name %q of a variable: %w", name, driver.ErrInvalid)
		}
		if len(name)+1+len(value) > maxSetting || strings.ContainsFunc(value, unicode.IsControl) {
			return fmt.Errorf("the value of %s is longer than %d bytes or holds control characters: %w", name, maxSetting, driver.ErrInvalid)
		}
	}
	return nil
}

// mark is the value of PITCHPIPE_JOB: what the TaskProlog may set for a job.
// Empty where nothing may be set.
func mark(file *jobfile.Job) string {
	if file.Stanza == nil {
		return ""
	}
	var names []string
	for _, knob := range file.Stanza.Blocks {
		for _, a := range knob.Attrs {
			if knob.Type == "knob" && a.Name == "env" && a.Value.Text != "" {
				names = append(names, a.Value.Text)
			}
		}
	}
	live := ""
	if file.Live() {
		live = "live"
	}
	return "1:" + strings.Join(names, "+") + ":" + live
}

// settable tells whether a stanza has anything that the TaskProlog could set.
func settable(file *jobfile.Job) bool { return !slices.Contains([]string{"", "1::"}, mark(file)) }

// settingsPath is the file of a job, by its number: that is what the TaskProlog
// knows.
func (d *Driver) settingsPath(r *journal.Record) string {
	return filepath.Join(d.cfg.SettingsDir, cmp.Or(r.Number, string(r.Job)))
}

// maxNote bounds what is said in a job's output; bytes.
const maxNote = 200

// noteLine is the first line of a settings file, which the TaskProlog prints into the
// job's output.
func noteLine(note string) string {
	note = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(note, "?"))
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "") + "…"
	}
	return "# " + strings.TrimSpace(note) + "\n"
}

// writeSettings replaces the files from which the TaskProlog sets up the next
// attempt: what is said of it in the job's output, the variables, and the settings of
// live knobs, which stay once they were there.
func (d *Driver) writeSettings(j parse.Job, r *journal.Record, c driver.Change, note string) error {
	if !d.cfg.TaskProlog {
		return nil
	}
	path := d.settingsPath(r)
	var err error
	if len(c.Env) == 0 && note == "" {
		err = remove(path)
	} else {
		var b strings.Builder
		if note != "" {
			b.WriteString(noteLine(note))
		}
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			b.WriteString(name + "=" + c.Env[name] + "\n")
		}
		err = d.publish(path, []byte(b.String()), j.UID)
	}
	if err != nil {
		return fmt.Errorf("settings of job %s: %w: %w", r.Job, driver.ErrTransient, err)
	}
	live := len(c.Live) > 0 || slices.ContainsFunc(r.Attempts, func(a driver.Attempt) bool { return len(a.Change.Live) > 0 })
	if live {
		data, err := driver.EncodeSettings(j.Restarts+1, c.Live)
		if err != nil {
			return err
		}
		if err := d.publish(path+".json", data, j.UID); err != nil {
			return fmt.Errorf("settings of job %s: %w: %w", r.Job, driver.ErrTransient, err)
		}
	}
	d.cfg.AfterStep("settings")
	return nil
}

// dropSettings removes the files of a job that ended.
func (d *Driver) dropSettings(r *journal.Record) error {
	if !d.cfg.TaskProlog {
		return nil
	}
	if err := errors.Join(remove(d.settingsPath(r)), remove(d.settingsPath(r)+".json")); err != nil {
		return fmt.Errorf("settings of job %s: %w: %w", r.Job, driver.ErrTransient, err)
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
