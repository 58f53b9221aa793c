package gpu

import (
	"cmp"
	"context"
	"time"

	"pitchpipe/exporter/collector/gpu/card"
)

// Helper reads the program pitchpipe-gpu.
type Helper struct {
	Path     string        // of the program
	Interval time.Duration // between readings, default 1 s, at most 2 s
	Silence  time.Duration // after which it hangs; default 10 s and five intervals
}

// Name is "helper".
func (Helper) Name() string { return "helper" }

// Run hands on what the helper says, line by line.
func (h Helper) Run(ctx context.Context, emit func(card.Reading)) error {
	interval := pace(h.Interval)
	// A driver may take seconds to wake a GPU up; one that takes longer hangs.
	silence := cmp.Or(h.Silence, 5*interval+10*time.Second)
	return stream(ctx, silence, []string{h.Path, "--interval", interval.String()}, func(line []byte) error {
		r, err := card.Decode(line)
		if err != nil {
			return err
		}
		emit(r)
		return nil
	})
}
