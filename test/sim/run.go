package sim

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	api "pitchpipe/exporter/api"
)

// run is one attempt of a job, from its start to its end.
type run struct {
	job     *job
	node    *node
	number  int
	seed    uint64
	took    driver.Resources // from the node
	env     map[string]string
	set     setting
	started time.Time
	ended   bool
	epoch   int      // the last one that ended
	said    Measured // of the present epoch, where it was recorded

	signalled *driver.Checkpoint // nil = it was not asked to save

	course meter
	marks  []api.Report
}

// Exit statuses as a shell would tell them.
const (
	exitMissing    = 127
	exitKilled     = 128 + 9
	exitTerminated = 128 + 15
	exitUnknown    = -1
)

// begin starts the next attempt of a job that left the queue.
func (c *Cluster) begin(j *job, n *node) {
	v := &j.view
	want := j.resources(v.Change)
	n.free = n.free.Minus(want.Room())
	v.Attempt++
	v.State, v.Node, v.Detail, v.ExitCode = driver.Running, n.spec.Name, "", exitUnknown
	if v.Started.IsZero() {
		v.Started = c.now
	}
	v.Attempts = append(v.Attempts, driver.Attempt{
		Number: v.Attempt, Started: c.now, ExitCode: exitUnknown,
		Change: v.Change.Clone(), Cause: j.cause, Intent: j.intent,
	})
	if m := j.intents.Moving; m != nil && m.Intent.ID == j.intent {
		j.intents.Close(driver.StepStarted, "it began by itself with the change")
	} else {
		j.intents.Close(driver.StepSuperseded, "it began before it was changed")
	}
	r := &run{
		job: j, node: n, number: v.Attempt, seed: j.act.runSeed(c.cfg.Seed, v.Name, v.Attempt),
		took: want, env: j.environment(v.Change), started: c.now, epoch: j.saved,
	}
	r.set = j.act.settingOf(want.Cores, r.env)
	j.runs = append(j.runs, r)
	c.changed(j)

	if note := strings.Join(strings.Fields(j.note), " "); note != "" { // one line whatever it holds
		j.print("pitchpipe: " + note)
	}
	j.note = ""
	if j.act.Missing {
		c.phase(r, idle())
		j.print("command not found")
		c.end(r, driver.NotStarted, exitMissing, "the command does not exist")
		return
	}
	if name := j.act.ShowEnv; name != "" {
		j.print("env " + name + "=" + r.env[name])
	}
	if err := j.printSettings(r); err != nil {
		c.phase(r, idle())
		c.end(r, driver.NotStarted, exitMissing, err.Error())
		return
	}
	j.print(fmt.Sprintf("attempt %d on %s with %d cores, %d threads, batch %s, %d of %d done",
		r.number, n.spec.Name, want.Cores, r.set.threads, strconv.FormatFloat(r.set.batch, 'g', -1, 64), r.epoch, j.act.Epochs))
	if limit := want.TimeLimit; limit > 0 {
		c.during(r, limit, func() { c.end(r, driver.TimeExceeded, exitTerminated, "time limit "+limit.String()) })
	}
	if d := j.act.DiesAt; d > 0 {
		c.during(r, d, func() { c.end(r, driver.Lost, exitUnknown, "its supervisor died") })
	}
	if j.act.Start == 0 {
		c.nextEpoch(r)
		return
	}
	c.phase(r, serial())
	c.during(r, j.act.Start, func() { c.boundary(r) })
}

// during is after, unless the attempt ended meanwhile.
func (c *Cluster) during(r *run, d time.Duration, f func()) {
	c.after(d, func() {
		if !r.ended {
			f()
		}
	})
}

// boundary is between two epochs, where the job looks whether it shall save.
func (c *Cluster) boundary(r *run) {
	act := &r.job.act
	if r.signalled == nil || act.IgnoreSignal {
		c.nextEpoch(r)
		return
	}
	c.phase(r, serial())
	c.during(r, act.Checkpoint, func() {
		r.job.saved = r.epoch
		r.job.print("saved")
		if c.heard(r, "saved"); r.ended {
			return
		}
		if act.CheckpointExit != 0 {
			c.exit(r, act.CheckpointExit)
			return
		}
		r.signalled = nil
		c.nextEpoch(r)
	})
}

// nextEpoch begins an epoch and puts its end on the agenda.
func (c *Cluster) nextEpoch(r *run) {
	act := &r.job.act
	e := r.epoch + 1
	d := act.epochTime(r.set, r.seed, e)
	work := act.working(r, e)
	r.said = Measured{}
	if c.cfg.Recorded != nil {
		if m, ok := c.cfg.Recorded(Work{r.job.view.Name, r.number, e, r.took.Cores, maps.Clone(r.env)}); ok {
			d, r.said = max(minEpoch, m.Length), m
			work.watts = m.Joules / d.Seconds()
		}
	}
	switch limit := r.took.MemoryBytes; {
	case limit > 0 && act.Memory > limit:
		c.phase(r, work)
		c.during(r, d/2, func() { c.outOfMemory(r) })
	case e == act.HangAt:
		c.phase(r, idle())
	case e == act.At:
		c.phase(r, work)
		c.during(r, d, func() { c.exit(r, act.Exit) })
	default:
		c.phase(r, work)
		c.during(r, d, func() { c.epochEnds(r, e) })
	}
}

// epochEnds writes the epoch's line and goes on.
func (c *Cluster) epochEnds(r *run, e int) {
	act := &r.job.act
	r.epoch = e
	loss, quality := act.lossAt(e), act.qualityAt(r.set, e)
	if r.said.Loss != nil {
		loss = *r.said.Loss
	}
	if r.said.Quality != nil {
		quality = *r.said.Quality
	}
	line := fmt.Sprintf("epoch %d/%d loss %s acc %s", e, act.Epochs, decimal(loss), decimal(quality))
	r.job.print(line)
	r.mark(c.now, line)
	if c.heard(r, line); r.ended {
		return
	}
	if e < act.Epochs {
		c.boundary(r)
		return
	}
	code := 0
	if act.At == 0 {
		code = act.Exit
	}
	c.exit(r, code)
}

// heard looks whether the line means "saved" to the one who asked. The attempt
// is then ended from outside.
func (c *Cluster) heard(r *run, line string) {
	m := r.job.intents.Moving
	if r.signalled == nil || m == nil || r.signalled.Done == "" {
		return
	}
	if done, err := regexp.Compile(r.signalled.Done); err == nil && done.MatchString(line) {
		c.goesOn(r, exitTerminated)
	}
}

// exit is the attempt's own end.
func (c *Cluster) exit(r *run, code int) {
	switch {
	case r.signalled != nil && r.signalled.Exit != 0 && code == r.signalled.Exit:
		c.goesOn(r, code)
	case code == 0:
		c.end(r, driver.Succeeded, 0, "")
	default:
		c.end(r, driver.Failed, code, "exit status "+strconv.Itoa(code))
	}
}

// goesOn ends an attempt whose job goes on later, from where it last saved. Where the
// intent is no longer there to go on with it, it goes on by itself under the settings
// that it had.
func (c *Cluster) goesOn(r *run, code int) {
	j := r.job
	c.close(r, code)
	if m := j.intents.Moving; m != nil {
		j.view.State, j.view.Node, j.view.Detail = driver.Stopped, "", "waits for intent "+m.Intent.ID
		j.touched = c.now
		c.after(hold, func() { c.expire(j, m.Intent.ID) })
		c.changed(j)
		c.schedule()
		return
	}
	was := j.view.Attempts[len(j.view.Attempts)-1]
	c.enqueue(j, was.Cause, was.Intent)
}

// outOfMemory ends an attempt that outgrew its limit. Under a change the job runs
// again: a limit tighter than the owner's goes first, alone, and then the rest of
// the change.
func (c *Cluster) outOfMemory(r *run) {
	j := r.job
	j.print(fmt.Sprintf("killed: over its memory limit of %d bytes", r.took.MemoryBytes))
	change := &j.view.Change
	if change.Empty() {
		c.end(r, driver.MemoryExceeded, exitKilled, "memory limit")
		return
	}
	c.close(r, exitKilled)
	j.intents.Close(driver.StepSuperseded, "the attempt was killed for memory")
	own := j.view.Resources.MemoryBytes
	if tuned := change.MemoryBytes; tuned > 0 && (own == 0 || tuned < own) {
		change.MemoryBytes = 0
	} else {
		*change = driver.Change{}
	}
	c.enqueue(j, driver.CauseMemory, "")
}

// end is the end of the job in an attempt.
func (c *Cluster) end(r *run, state driver.State, code int, detail string) {
	c.close(r, code)
	c.finish(r.job, state, detail)
}

// finish makes a state final.
func (c *Cluster) finish(j *job, state driver.State, detail string) {
	j.view.State, j.view.Detail, j.view.Ended = state, detail, c.now
	j.intents.Moving = nil
	c.changed(j)
	c.schedule()
}

// close ends an attempt and frees its room.
func (c *Cluster) close(r *run, code int) {
	v := &r.job.view
	c.phase(r, activity{})
	r.ended = true
	r.node.free = r.node.free.Plus(r.took.Room())
	last := &v.Attempts[len(v.Attempts)-1]
	last.Ended, last.ExitCode = c.now, code
	v.ExitCode = code
}
