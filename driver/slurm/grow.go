package slurm

import (
	"cmp"
	"context"
	"fmt"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm/parse"
)

// claim is what a job will have of its node.
type claim struct {
	node string
	room driver.Room
}

func roomOf(s Size) driver.Room { return driver.Room{Cores: s.Cores, Memory: total(s)} }

// rooms are what a job that runs has, which may be more CPUs than it asked for, and what it
// is to have. One that asked for no memory has all that its node has.
func rooms(j parse.Job, r *Record, c driver.Change) (has, want driver.Room) {
	has, want = roomOf(sizeOf(j)), roomOf(target(r.Own, c))
	has.Cores = max(has.Cores, j.CPUs)
	if has.Memory == 0 {
		want.Memory = 0
	}
	return has, want
}

// grow refuses more than a job that runs has where it would have to wait for that: behind
// those that wait, or since no node has it free beside what others that are being moved
// will have. The way back to what its owner asked for is always open.
func (d *Driver) grow(ctx context.Context, j parse.Job, r *Record, c driver.Change) error {
	has, want := rooms(j, r, c)
	if c.Empty() || !want.Beyond(has) {
		return nil
	}
	room, err := d.room(ctx, j)
	if err != nil {
		return fmt.Errorf("who waits for room: %w", err)
	}
	if room.ahead || room.crowded != "" {
		return fmt.Errorf("%w: %s", driver.ErrNoRoom, cmp.Or(room.crowded, "others wait for it"))
	}
	out, err := d.ask(ctx, "sinfo", "-h", "-N", "-p", j.Partition, "-O", parse.FreeFormat)
	if err != nil {
		return fmt.Errorf("what is free: %w", err)
	}
	nodes, err := parse.Frees(out)
	if err != nil {
		return fmt.Errorf("what is free: %w: %w", driver.ErrTransient, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var free []driver.Room
	for _, n := range nodes {
		left := driver.Room{Cores: n.CPUs, Memory: n.MemoryBytes}
		switch {
		case n.Node == j.Node:
			left = left.Plus(has)
		case len(j.Picky) > 0: // whether that node would do is unknown
			continue
		}
		for id, c := range d.claims {
			if id != r.Job && c.node == n.Node {
				left = left.Minus(c.room)
			}
		}
		free = append(free, left)
	}
	return driver.Grow(has, want, free...)
}

// claim notes what a job will have of its node that is between two attempts, or on its way
// to more than it has. It counts as taken until the next attempt is seen to run.
func (d *Driver) claim(r *Record) {
	var want driver.Room
	switch m := r.Moving; {
	case r.Last != nil || r.Node == "":
	case r.Next != nil:
		want = roomOf(r.Next.Size)
	case m != nil:
		want = roomOf(target(r.Own, m.Intent.Change))
		if left := m.Phase == move.Stopped || m.Phase == move.Changed; !left && !want.Beyond(roomOf(r.From.Before)) {
			want = driver.Room{}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if want.Cores == 0 {
		delete(d.claims, r.Job)
		return
	}
	d.claims[r.Job] = claim{r.Node, want}
}
