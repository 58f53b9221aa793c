package local

import (
	"slices"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
)

// live reports whether the attempt that runs has a settings file: where the job's
// stanza names a live knob, and from the first live change on, whatever became of
// the change, so that a job that found a file once may rely on it.
func (r *record) live() bool {
	return r.File.Live || slices.ContainsFunc(r.Job.Attempts, func(a driver.Attempt) bool { return len(a.Change.Live) > 0 })
}

// writeSettings replaces the settings file before an attempt, so that the job
// finds it from its first moment on. Its revision is the attempt's number.
func (r *record) writeSettings(s store) error {
	if !r.live() {
		return nil
	}
	data, err := driver.EncodeSettings(r.Job.Attempt, r.Job.Change.Live)
	if err != nil {
		return err
	}
	uid, gid := -1, -1
	if r.User != nil {
		uid, gid = int(r.User.UID), int(r.User.GID)
	}
	return durable.WriteFor(s.settings(r.Job.ID), data, 0o400, uid, gid)
}
