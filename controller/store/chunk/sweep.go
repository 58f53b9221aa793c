package chunk

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/store"
)

// Orphan is the age from which on chunks that no head names are removed: no write
// lasts as long.
const Orphan = 24 * time.Hour

// Sweep removes the chunks that writers left behind when they died, and returns how
// many. It may run beside readers and writers.
func (v *Values) Sweep(ctx context.Context) (int, error) {
	pages, err := v.pages.List(ctx, chunks)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	before := v.now().Add(-Orphan)
	old := map[string][]Page{} // by place and generation
	for _, p := range pages {
		parts := strings.Split(strings.TrimPrefix(p.Path, chunks), "/")
		if len(parts) == 3 && begun(parts[1]).Before(before) {
			id := parts[0] + "/" + parts[1]
			old[id] = append(old[id], p)
		}
	}
	if len(old) == 0 {
		return 0, nil
	}
	// Those that a head names stay.
	keys, err := v.list(ctx, "")
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	places := map[string]bool{}
	for id := range old {
		at, _, _ := strings.Cut(id, "/")
		places[at] = true
	}
	for _, p := range keys {
		key := strings.TrimPrefix(p.Path, heads)
		if !places[place(key)] {
			continue
		}
		head, err := v.pages.Read(ctx, heads+key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("sweep: %w", err)
		}
		m, _, err := parse(head.Value)
		if err != nil {
			return 0, fmt.Errorf("sweep: %s: %w", key, err)
		}
		if m != nil {
			delete(old, place(key)+"/"+m.Generation)
		}
	}
	n := 0
	for _, pages := range old {
		for _, p := range pages {
			if err := v.pages.Remove(ctx, p.Path, p.Version); err != nil && !errors.Is(err, store.ErrNotFound) {
				return n, fmt.Errorf("sweep: %w", err)
			}
			n++
		}
	}
	return n, nil
}

// begun is when a generation was; far in the future where that cannot be read.
func begun(generation string) time.Time {
	text, _, _ := strings.Cut(generation, "-")
	n, err := strconv.ParseInt(text, 16, 64)
	if err != nil {
		return time.Unix(1<<40, 0)
	}
	return time.Unix(n, 0)
}
