package nomad

import (
	"time"

	"pitchpipe/driver"
)

// Jobs that are on the list and that Nomad does not answer for.

// answersWithin is how long Nomad may take to tell all of one job.
const answersWithin = 20 * time.Second

// unread is a job that cannot be read: as it was last read, or where nobody has read it as
// the list has it. Its detail says so.
func (d *Driver) unread(l listed, why error) (job driver.Job) {
	if last := d.peek(l.id).last; last != nil {
		job = last.Clone()
	} else {
		job = driver.Job{
			ID: l.id, Name: l.name, Owner: place(l.id).namespace, State: driver.Pending, ExitCode: -1,
			Submitted: time.Unix(0, l.submitted).UTC(),
		}
		switch l.status {
		case "running":
			job.State = driver.Running
		case "dead":
			job.State = driver.Lost
		}
	}
	job.Detail = "Nomad does not answer for it: " + why.Error()
	return job
}
