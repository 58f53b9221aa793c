package local

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/driver"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	in := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	job := func(id string, cores int, memory int64, limit int) waiting {
		return waiting{ID: driver.JobID(id), Want: driver.Room{Cores: cores, Memory: memory}, Limit: time.Duration(limit) * time.Second}
	}
	held := func(w waiting, s int) waiting { w.NotBefore = in(s); return w }
	for _, tt := range []struct {
		name    string
		free    driver.Room
		queue   []waiting
		running []busy
		want    []driver.JobID
	}{
		{
			name: "jobs that fit start in their order", free: driver.Room{Cores: 4, Memory: 100},
			queue: []waiting{job("a", 1, 10, 0), job("b", 2, 10, 0), job("c", 1, 10, 0)},
			want:  []driver.JobID{"a", "b", "c"},
		},
		{
			name: "a held job neither starts nor holds others up", free: driver.Room{Cores: 2, Memory: 100},
			queue: []waiting{held(job("a", 2, 0, 0), 5), job("b", 2, 0, 0)},
			want:  []driver.JobID{"b"},
		},
		{
			name: "a job whose time has just come starts", free: driver.Room{Cores: 2, Memory: 100},
			queue: []waiting{held(job("a", 2, 0, 0), 0)},
			want:  []driver.JobID{"a"},
		},
		{
			name: "a short job passes a head that waits for a known end", free: driver.Room{Cores: 1, Memory: 100},
			queue:   []waiting{job("head", 2, 0, 0), job("short", 1, 0, 60)},
			running: []busy{{Has: driver.Room{Cores: 1, Memory: 0}, Ends: in(60)}},
			want:    []driver.JobID{"short"},
		},
		{
			name: "a job that would run past the head's start does not pass it", free: driver.Room{Cores: 1, Memory: 100},
			queue:   []waiting{job("head", 2, 0, 0), job("long", 1, 0, 61)},
			running: []busy{{Has: driver.Room{Cores: 1, Memory: 0}, Ends: in(60)}},
		},
		{
			name: "a job without a limit does not pass a head that needs its core", free: driver.Room{Cores: 1, Memory: 100},
			queue:   []waiting{job("head", 2, 0, 0), job("endless", 1, 0, 0)},
			running: []busy{{Has: driver.Room{Cores: 1, Memory: 0}, Ends: in(60)}},
		},
		{
			name: "a job without a limit passes where it fits beside the head", free: driver.Room{Cores: 1, Memory: 100},
			queue:   []waiting{job("head", 2, 0, 0), job("endless", 1, 0, 0)},
			running: []busy{{Has: driver.Room{Cores: 2, Memory: 0}, Ends: in(60)}},
			want:    []driver.JobID{"endless"},
		},
		{
			name: "only one of two fits beside the head", free: driver.Room{Cores: 2, Memory: 100},
			queue:   []waiting{job("head", 3, 0, 0), job("one", 1, 0, 0), job("two", 1, 0, 0)},
			running: []busy{{Has: driver.Room{Cores: 2, Memory: 0}, Ends: in(60)}},
			want:    []driver.JobID{"one"},
		},
		{
			name: "no job passes a head that waits for an unknown end of the same cores", free: driver.Room{Cores: 1, Memory: 100},
			queue:   []waiting{job("head", 2, 0, 0), job("short", 1, 0, 1)},
			running: []busy{{Has: driver.Room{Cores: 1, Memory: 0}}},
		},
		{
			name: "a head that waits only for memory is passed by a job without a memory limit", free: driver.Room{Cores: 4, Memory: 10},
			queue:   []waiting{job("head", 1, 50, 0), job("small", 1, 5, 0), job("none", 1, 0, 0)},
			running: []busy{{Has: driver.Room{Cores: 0, Memory: 90}}},
			want:    []driver.JobID{"none"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := schedule(now, tt.free, tt.queue, tt.running)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("started (-want +got):\n%s", d)
			}
		})
	}
}

// machineState draws a machine, what runs on it, and a queue.
func machineState(t *rapid.T, now time.Time, limits bool) (driver.Room, driver.Room, []waiting, []busy) {
	total := driver.Room{Cores: rapid.IntRange(1, 8).Draw(t, "cores"), Memory: int64(rapid.IntRange(1, 100).Draw(t, "memory"))}
	free := total
	demand := func(label string, within driver.Room) driver.Room {
		return driver.Room{
			Cores:  rapid.IntRange(1, within.Cores).Draw(t, label+" cores"),
			Memory: int64(rapid.IntRange(0, int(within.Memory)).Draw(t, label+" memory")),
		}
	}
	least := 0
	if limits {
		least = 1
	}
	var running []busy
	for i := range rapid.IntRange(0, 5).Draw(t, "running") {
		if free.Cores == 0 {
			break
		}
		b := busy{Has: demand(fmt.Sprintf("running %d", i), free)}
		if s := rapid.IntRange(least, 20).Draw(t, "ends"); s > 0 {
			b.Ends = now.Add(time.Duration(s) * time.Second)
		}
		free = free.Minus(b.Has)
		running = append(running, b)
	}
	var queue []waiting
	for i := range rapid.IntRange(1, 8).Draw(t, "queue") {
		queue = append(queue, waiting{
			ID: driver.JobID(fmt.Sprintf("job-%d", i)), Want: demand(fmt.Sprintf("job %d", i), total),
			Limit:     time.Duration(rapid.IntRange(least, 20).Draw(t, "limit")) * time.Second,
			NotBefore: now.Add(time.Duration(rapid.IntRange(-3, 1).Draw(t, "held")) * time.Second),
		})
	}
	return total, free, queue, running
}

func TestScheduleNeverGivesMoreThanTheMachineHas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_000_000, 0)
		_, free, queue, running := machineState(t, now, false)
		started := schedule(now, free, queue, running)
		for _, id := range started {
			i := slices.IndexFunc(queue, func(w waiting) bool { return w.ID == id })
			if i < 0 {
				t.Fatalf("started %s, which is not in the queue or was started before", id)
			}
			if queue[i].NotBefore.After(now) {
				t.Fatalf("started %s before its time", id)
			}
			free = free.Minus(queue[i].Want)
			queue = slices.Delete(queue, i, i+1)
		}
		if free.Cores < 0 || free.Memory < 0 {
			t.Fatalf("over-allocated: %+v left", free)
		}
		// What could start at the head of the queue did.
		for _, w := range queue {
			if w.NotBefore.After(now) {
				continue
			}
			if free.Holds(w.Want) && len(started) == 0 {
				t.Fatalf("%s fits, is first, and was not started", w.ID)
			}
			break
		}
	})
}

func TestScheduleNeverDelaysTheHead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_000_000, 0)
		_, free, queue, running := machineState(t, now, false)
		queue = slices.DeleteFunc(queue, func(w waiting) bool { return w.NotBefore.After(now) })
		started := schedule(now, free, queue, running)
		// The head is the first that did not start; those before it did.
		h := slices.IndexFunc(queue, func(w waiting) bool { return !slices.Contains(started, w.ID) })
		if h < 0 {
			return
		}
		state := func(with []waiting) (driver.Room, []busy) {
			f, r := free, slices.Clone(running)
			for _, w := range with {
				if slices.Contains(started, w.ID) {
					b := busy{Has: w.Want}
					if w.Limit > 0 {
						b.Ends = now.Add(w.Limit)
					}
					f, r = f.Minus(w.Want), append(r, b)
				}
			}
			return f, r
		}
		f, r := state(queue[:h])
		before, _ := reservation(f, queue[h].Want, r)
		f, r = state(queue)
		after, _ := reservation(f, queue[h].Want, r)
		if !before.IsZero() && (after.IsZero() || after.After(before)) {
			t.Fatalf("head %s could start at %v, with back-fill %v at %v", queue[h].ID, before, started, after)
		}
	})
}

func TestScheduleStartsEveryJobInTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_000_000, 0)
		total, free, queue, running := machineState(t, now, true)
		first := queue[0]
		// A stream of small jobs that never ends must not keep the first one out.
		// Its start is bounded by what runs and by those before it: 20 s each.
		for range 600 {
			started := schedule(now, free, queue, running)
			for _, id := range started {
				i := slices.IndexFunc(queue, func(w waiting) bool { return w.ID == id })
				free = free.Minus(queue[i].Want)
				running = append(running, busy{Has: queue[i].Want, Ends: now.Add(queue[i].Limit)})
				queue = slices.Delete(queue, i, i+1)
			}
			if slices.Contains(started, first.ID) {
				return
			}
			now = now.Add(time.Second)
			running = slices.DeleteFunc(running, func(b busy) bool {
				if b.Ends.After(now) {
					return false
				}
				free = free.Plus(b.Has)
				return true
			})
			queue = append(queue, waiting{
				ID: driver.JobID(fmt.Sprintf("stream-%d", now.Unix())), Want: driver.Room{Cores: 1, Memory: 0},
				Limit: time.Duration(rapid.IntRange(1, 20).Draw(t, "stream limit")) * time.Second,
			})
		}
		t.Fatalf("job %+v never started on %+v", first, total)
	})
}
