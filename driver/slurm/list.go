package slurm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

// List returns every job that slurmctld or the journal remembers, oldest first. A
// job's script is there once it was read by Get, as long as slurmctld remembers the
// job. While a watch runs its last look is the list.
func (d *Driver) List(ctx context.Context) ([]driver.Job, error) {
	d.mu.Lock()
	watched := time.Now().Before(d.until)
	d.mu.Unlock()
	if !watched {
		if _, err := d.survey(ctx); err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
	}
	kept, err := d.journal.List()
	if err != nil {
		return nil, fmt.Errorf("list: %w: %w", driver.ErrTransient, err)
	}
	d.mu.Lock()
	there, lines := maps.Clone(d.seen), d.lines
	d.mu.Unlock()
	ids := slices.Concat(slices.Collect(maps.Keys(there)), slices.Collect(maps.Keys(lines)), kept) // something was done to those of lines alone
	slices.Sort(ids)
	var out []driver.Job
	for _, id := range slices.Compact(ids) {
		var job driver.Job
		if s, ok := there[id]; ok {
			job, err = d.listed(s)
		} else if job, err = d.older(ctx, id); errors.Is(err, driver.ErrNotFound) || errors.Is(err, driver.ErrUnsupported) {
			continue
		}
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		if err != nil { // one job's record never hides the others
			d.cfg.Logger.Warn("a job is left out of the list", "job", string(id), "error", err)
			continue
		}
		out = append(out, job)
	}
	slices.SortStableFunc(out, func(a, b driver.Job) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(ordinal(a.ID), ordinal(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

func (d *Driver) listed(s seen) (driver.Job, error) {
	if s.answer != nil {
		return s.answer.Clone(), nil
	}
	r, _, err := d.entered(s.job)
	return d.sketch(s.job, r), err
}

// older is a job that squeue does not show. Nothing changes any more of one that
// ended and that slurmctld has forgotten.
func (d *Driver) older(ctx context.Context, id driver.JobID) (driver.Job, error) {
	d.mu.Lock()
	job, ok := d.over[id]
	_, shown := d.lines[id]
	d.mu.Unlock()
	if ok && !shown {
		return job.Clone(), nil
	}
	job, err := d.Get(ctx, id)
	if err == nil && job.State.Ended() && !shown {
		short := job.Clone()
		short.Source, short.Resources.Env = nil, nil
		d.mu.Lock()
		d.over[id] = short
		d.mu.Unlock()
	}
	return job, err
}

func ordinal(id driver.JobID) int {
	n, _, _ := strings.Cut(string(id), "_")
	i, _ := strconv.Atoi(n) // 0 for what is not a number
	return i
}

// survey is what a look at the whole queue found.
type survey struct {
	lines map[driver.JobID]uint64 // of each job that is seen, by what squeue printed; not to be changed
	next  int                     // above the number of every job
	cost  time.Duration           // of CPU, for squeue and its output
}

// queue asks squeue for every job, of one user or of all, those included that ended
// a short while ago, and returns what CPU that took.
func (d *Driver) queue(ctx context.Context) ([]parse.QueueLine, time.Duration, error) {
	args := arguments{"-h", "-a", "-r", "-t", "all", "-O", parse.QueueFormat}
	args.when(!d.cfg.Everyone, "-u", d.cfg.User)
	args.when(len(d.cfg.Partitions) > 0, "-p", strings.Join(d.cfg.Partitions, ","))
	out, cost, err := d.paid(ctx, "squeue", args...)
	if err != nil {
		return nil, cost, err
	}
	begin := time.Now()
	lines, err := parse.Queue(out)
	if err != nil {
		return nil, cost, fmt.Errorf("%w: %w", driver.ErrTransient, err)
	}
	// On a busy machine the clock runs on while others compute.
	return lines, cost + min(cost, time.Since(begin)), nil
}

// survey looks at the whole queue and reads the jobs about which squeue says something new.
func (d *Driver) survey(ctx context.Context) (survey, error) {
	d.polling.Lock()
	defer d.polling.Unlock()
	begin := time.Now()
	lines, cost, err := d.queue(ctx)
	if err != nil {
		return survey{}, err
	}
	s := survey{lines: make(map[driver.JobID]uint64, len(lines)), cost: cost}
	stale, whole := d.compare(&s, lines, begin)
	fresh, others, err := d.details(ctx, stale, len(lines))
	if err != nil {
		return survey{}, err
	}
	for number, j := range fresh {
		others[number] = !d.ours(j)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range stale {
		id := jobID(l.ID, l.ArrayJob, l.ArrayTask)
		j, ok := fresh[l.ID]
		switch {
		case others[l.ID]:
			d.strangers[strings.Clone(l.ID)] = begin // or the number would keep all that was printed
			delete(s.lines, id)
			delete(d.seen, id)
		case !ok: // it is gone, or Slurm did not answer
			delete(d.seen, id)
		default:
			delete(d.strangers, l.ID)
			if l.ArrayTask != "" {
				j = j.Task(l.ArrayTask)
			}
			d.remember(id, seen{print: s.lines[id], at: begin, job: j})
		}
	}
	if whole {
		d.whole = begin
	}
	d.lines = s.lines
	numbers := make(map[string]bool, len(lines))
	for _, l := range lines {
		numbers[l.ID] = true
		s.next = max(s.next, ordinal(driver.JobID(l.ID))+1)
	}
	d.forget(begin, numbers)
	return s, nil
}

// compare fills in what squeue printed, and returns the jobs that must be read:
// those with something new, or all.
func (d *Driver) compare(s *survey, lines []parse.QueueLine, at time.Time) (stale []parse.QueueLine, whole bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	whole = at.Sub(d.whole) >= anew
	for _, l := range lines {
		if _, stranger := d.strangers[l.ID]; stranger && !whole {
			continue
		}
		id, now := jobID(l.ID, l.ArrayJob, l.ArrayTask), d.print(l)
		s.lines[id] = now
		if have, ok := d.seen[id]; !ok || have.print != now || whole {
			stale = append(stale, l)
		}
	}
	return stale, whole
}

// anew is how often everything is read again, since squeue does not print all that can change.
const anew = 10 * time.Minute

// forget drops what is known of jobs that are gone. Those that were met after the
// look had begun are not. The caller has d.mu.
func (d *Driver) forget(begin time.Time, numbers map[string]bool) {
	for id, s := range d.seen {
		if _, ok := d.lines[id]; !ok && s.at.Before(begin) {
			delete(d.seen, id)
		}
	}
	maps.DeleteFunc(d.strangers, func(number string, since time.Time) bool { return !numbers[number] && since.Before(begin) })
	arrays := map[driver.JobID]bool{}
	for id := range d.lines {
		arrays[driver.JobID(arrayOf(id))] = true
	}
	for id := range d.texts {
		_, shown := d.lines[id]
		if _, ok := d.seen[id]; !ok && !shown && !arrays[id] {
			delete(d.texts, id)
		}
	}
	maps.DeleteFunc(d.doubted, func(_ driver.JobID, at time.Time) bool { return begin.Sub(at) > anew }) // no reading takes as long
}

// ours reports whether a job is one of those that are seen, or was when something was
// done to it.
func (d *Driver) ours(j parse.Job) bool {
	if d.mine(j) {
		return true
	}
	if !d.of(j.User) {
		return false
	}
	_, known, err := d.journal.Find(jobID(j.ID, j.ArrayJob, j.ArrayTask))
	return known || err != nil
}

// details reads jobs, by their numbers, and returns which numbers have a record that cannot be
// read. To read all of a cluster costs as much as reading every hundredth by itself.
func (d *Driver) details(ctx context.Context, stale []parse.QueueLine, all int) (fresh map[string]parse.Job, unreadable map[string]bool, err error) {
	fresh, unreadable = map[string]parse.Job{}, map[string]bool{}
	want := map[string]bool{} // all waiting tasks of an array have one number
	for _, l := range stale {
		want[l.ID] = true
	}
	if len(want) > max(20, all/100) {
		out, err := command.Ask(ctx, d.cfg.Commands, "scontrol", "-o", "show", "job")
		if err != nil {
			return nil, nil, err
		}
		d.pick(out, want, fresh)
	}
	for number := range want {
		if _, ok := fresh[number]; ok {
			continue
		}
		j, _, err := d.one(ctx, number)
		switch {
		case err == nil:
			fresh[number] = j
		case ctx.Err() != nil:
			return nil, nil, err
		case !errors.Is(err, driver.ErrNotFound): // a call for it reads it by itself
			d.cfg.Logger.Warn("a job cannot be read", "job", number, "error", err)
			unreadable[number] = errors.Is(err, driver.ErrUnsupported)
		}
	}
	return fresh, unreadable, nil
}

// pick reads those records of `scontrol -o show job` that are wanted. Each is read from its own
// copy, or one job would keep the text of all in memory. A number that is there twice is left
// out: texts that users write are printed as they are, and one of the two may be such a text.
// It is then read by itself.
func (d *Driver) pick(out []byte, want map[string]bool, into map[string]parse.Job) {
	times := make(map[string]int, len(want))
	for record := range bytes.SplitSeq(out, []byte("\nJobId=")) {
		record = bytes.TrimPrefix(record, []byte("JobId="))
		number, _, _ := bytes.Cut(record, []byte(" "))
		if !want[string(number)] {
			continue
		}
		if times[string(number)]++; times[string(number)] > 1 {
			delete(into, string(number))
			continue
		}
		jobs, err := parse.Jobs(append([]byte("JobId="), record...))
		if err != nil || len(jobs) != 1 {
			d.cfg.Logger.Debug("a job cannot be read", "job", string(number), "error", err)
			continue
		}
		into[string(number)] = jobs[0]
	}
}

// one reads the job of a number, no matter whose it is.
func (d *Driver) one(ctx context.Context, number string) (parse.Job, time.Duration, error) {
	jobs, cost, err := d.printed(ctx, number)
	if i := slices.IndexFunc(jobs, func(j parse.Job) bool { return j.ID == number }); i >= 0 {
		return jobs[i], cost, nil
	}
	return parse.Job{}, cost, cmp.Or(err, fmt.Errorf("job %s: %w", number, driver.ErrNotFound))
}
