package slurm

import (
	"cmp"
	"context"
	"encoding/binary"
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

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/slurm/parse"
)

// What the TaskProlog takes; it refuses the whole file where there is more.
const (
	maxSettings = 64
	maxSetting  = 1024 // bytes of a line
)

// judgeEnv refuses more than the file has room for.
func judgeEnv(env map[string]string) error {
	if len(env) > maxSettings {
		return fmt.Errorf("%d variables, more than %d: %w", len(env), maxSettings, driver.ErrInvalid)
	}
	for name, value := range env {
		if len(name)+1+len(value) > maxSetting {
			return fmt.Errorf("the value of %s is longer than %d bytes: %w", name, maxSetting, driver.ErrInvalid)
		}
	}
	return nil
}

// nothing is the mark of a job in which the TaskProlog sets nothing.
const nothing = "2::"

// mark is the value of PITCHPIPE_JOB, 2:live:NAME=#|WORD;NAME=#: the variables that the
// TaskProlog may set for a job, each to a number (#) or one of the words. It has action instead of
// live for a job that offers actions, and nothing for one without a settings file. The mark is
// empty for a job without a stanza.
func mark(file *jobfile.Job) string {
	switch {
	case file.Stanza == nil:
		return ""
	case !file.Applies():
		return nothing
	}
	var variables []string
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for _, knob := range file.Stanza.Blocks {
		if env := knob.Text("env"); knob.Type == "knob" && name.MatchString(env) {
			variables = append(variables, env+"="+strings.Join(allowed(file.Stanza.Blocks, knob), "|"))
		}
	}
	live := ""
	switch {
	case file.Acts():
		live = "action"
	case file.Live():
		live = "live"
	}
	return "2:" + live + ":" + strings.Join(variables, ";")
}

// allowed lists what a knob may be set to: # for any number, and words. Words that no
// variable is given are left out. The submission plugin does the same.
func allowed(blocks []*jobfile.Block, knob *jobfile.Block) []string {
	if leader := knob.Text("follows"); leader != "" {
		i := slices.IndexFunc(blocks, func(b *jobfile.Block) bool { return b.Type == "knob" && b.Label == leader })
		if i < 0 || blocks[i].Text("follows") != "" {
			return nil
		}
		return allowed(blocks, blocks[i])
	}
	var texts []string
	for _, a := range knob.Attrs {
		if slices.Contains([]string{"values", "min", "max", "default"}, a.Name) {
			texts = append(texts, a.Value.Text) // empty for a list
			for _, item := range a.Value.List {
				texts = append(texts, item.Value.Text)
			}
		}
	}
	var numbers, words []string
	number := regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	for _, text := range texts {
		switch {
		case number.MatchString(text), knob.Label == "memory", knob.Label == "power_limit": // amounts have units
			numbers = []string{"#"}
		case text != "" && jobfile.IsPlain(text):
			words = append(words, text)
		}
	}
	return append(numbers, words...)
}

// settable reports whether a stanza has anything that the TaskProlog could set.
func settable(file *jobfile.Job) bool {
	return file.Stanza != nil && (file.Live() || slices.ContainsFunc(file.Stanza.Blocks, func(b *jobfile.Block) bool {
		return b.Type == "knob" && b.Text("env") != ""
	}))
}

// maxNote bounds what is written to a job's output, in bytes.
const maxNote = 200

// noteLine is the first line of a settings file, which the TaskProlog prints into the
// job's output.
func noteLine(note string) string {
	note = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if r < ' ' || r > '~' { // a terminal may act on it
			return '?'
		}
		return r
	}, note)
	if len(note) > maxNote {
		note = note[:maxNote] + "..."
	}
	return "# " + strings.TrimSpace(note) + "\n"
}

// writeSettings replaces the files from which the TaskProlog sets up the next
// attempt: what the job's output says about it, the variables, and the settings of
// live knobs, which stay once they were there.
func (d *Driver) writeSettings(j parse.Job, r *Record, c driver.Change, note string) error {
	if !d.cfg.TaskProlog {
		return nil
	}
	text := ""
	if note != "" {
		text = noteLine(note)
	}
	for _, variable := range driver.Environ(c.Env) {
		text += variable + "\n"
	}
	if err := d.publish(r, "", []byte(text), j.UID); err != nil {
		return err
	}
	if len(c.Live)+r.Adapts > 0 || slices.ContainsFunc(r.Attempts, func(a driver.Attempt) bool { return len(a.Change.Live) > 0 }) {
		return d.writeLive(j, r, c)
	}
	d.cfg.AfterStep("settings")
	return nil
}

// writeLive replaces the settings file. Its revision is the attempt's number, and how often the job was
// adapted on top.
func (d *Driver) writeLive(j parse.Job, r *Record, c driver.Change) error {
	data, err := driver.EncodeSettings(j.Restarts+1+r.Adapts, driver.Merge(c.Live, r.Adapted))
	if err != nil {
		return err
	}
	if err := d.publish(r, ".json", data, j.UID); err != nil {
		return err
	}
	d.cfg.AfterStep("settings")
	return nil
}

// Adapt implements driver.Adapter. The record is durable first, so that a file that was not written is
// written by the next call or attempt. The TaskProlog names the file to each job that offers actions,
// whether it is there yet or not.
func (d *Driver) Adapt(ctx context.Context, id driver.JobID, settings map[string]string) error {
	defer d.hold(id)()
	j, r, err := d.opened(ctx, id)
	if err != nil {
		return fmt.Errorf("adapt: %w", err)
	}
	if j.State != "RUNNING" {
		return fmt.Errorf("adapt job %s: it is %s: %w", id, j.State, driver.ErrConflict)
	}
	if err := d.judgeChange(ctx, j, r, driver.Change{Live: settings}); err != nil {
		return fmt.Errorf("adapt job %s: %w", id, err)
	}
	if !maps.Equal(r.Adapted, settings) {
		r.Adapted, r.Adapts = maps.Clone(settings), r.Adapts+1
		if err := d.write(r, "adapted"); err != nil {
			return err
		}
	}
	return d.writeLive(j, r, r.latest().Change)
}

// dropSettings removes the files of a job that ended.
func (d *Driver) dropSettings(r *Record) error {
	if !d.cfg.TaskProlog {
		return nil
	}
	return errors.Join(d.publish(r, "", nil, 0), d.publish(r, ".json", nil, 0))
}

// publish replaces a file of a job that the TaskProlog reads, which knows the job by its number
// and runs as its user. No one else but this process can read it. Without data there is none.
func (d *Driver) publish(r *Record, suffix string, data []byte, uid uint32) error {
	path := filepath.Join(d.cfg.SettingsDir, cmp.Or(r.Number, string(r.Job))+suffix)
	var openly bool
	var err error
	if len(data) > 0 {
		openly, err = publish(path, data, uid, reads)
	} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if openly {
		d.openly.Do(func() {
			d.cfg.Logger.Warn("every user can read the settings of jobs: their filesystem has no access lists", "folder", d.cfg.SettingsDir)
		})
	}
	if err != nil {
		return fmt.Errorf("settings of job %s: %w: %w", r.Job, driver.ErrTransient, err)
	}
	return nil
}

// publish writes a file for one user. A user's own controller owns it as he does; a
// site's, which may give no file away, names him in the file's access list. Where the
// filesystem has no such lists everybody can read it, which is openly.
func publish(path string, data []byte, uid uint32, grant func(f *os.File, uid uint32) error) (openly bool, err error) {
	if int(uid) == os.Geteuid() {
		return false, durable.Write(path, data, 0o600)
	}
	// The mode's group bits are the most that the list may grant.
	err = durable.WriteWith(path, data, 0o640, func(f *os.File) error { return grant(f, uid) })
	if errors.Is(err, unix.ENOTSUP) {
		return true, durable.Write(path, data, 0o644)
	}
	return false, err
}

// accessList is the name under which Linux keeps a file's POSIX access list.
const accessList = "system.posix_acl_access"

// reads lets one more user read the file, and no group. Its maker owns it.
func reads(f *os.File, uid uint32) error {
	return unix.Fsetxattr(int(f.Fd()), accessList, listOf(uid), 0)
}

// listOf is an access list as the kernel takes it: version 2, then entries of a tag, what
// is allowed, and whom it is about, in the order of the tags.
func listOf(uid uint32) []byte {
	const (
		owner, user, group, mask, others = 0x01, 0x02, 0x04, 0x10, 0x20
		read, write                      = 4, 2
		anyone                           = ^uint32(0)
	)
	out := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, may uint16
		id       uint32
	}{{owner, read | write, anyone}, {user, read, uid}, {group, 0, anyone}, {mask, read, anyone}, {others, 0, anyone}} {
		out = binary.LittleEndian.AppendUint16(out, e.tag)
		out = binary.LittleEndian.AppendUint16(out, e.may)
		out = binary.LittleEndian.AppendUint32(out, e.id)
	}
	return out
}
