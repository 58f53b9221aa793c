package epochs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"pitchpipe/test/workloads/checkpoint"
)

// ErrAsked is the failure that --fail-at asks for.
var ErrAsked = errors.New("failed as asked")

// Request is what a signal asks of a run.
type Request uint8

// The requests.
const (
	SaveAndLeave Request = iota // SIGUSR1: exit with ExitSaved
	Terminate                   // SIGTERM: exit with ExitTerminated
)

// Streams is where a run speaks to.
type Streams struct {
	Out      io.Writer // one line an epoch and the last one; every line is one Write
	Messages io.Writer // everything else
}

// Run makes the work, takes it to where its checkpoint says it was, and does what
// is left. Requests are heeded between two epochs, so that no epoch is cut; those
// that came before Run are heeded before the first. It returns the exit status;
// the error tells why where that is ExitFailed or ExitUsage.
//
// Without a file to save to, SaveAndLeave is refused with a message and the run
// goes on: leaving would throw its work away.
func Run(ctx context.Context, kind Kind, o Options, requests <-chan Request, s Streams) (status int, err error) {
	r := run{kind: kind, options: o, streams: s}
	defer func() {
		c, ok := r.work.(io.Closer)
		if !ok {
			return
		}
		if cerr := c.Close(); cerr != nil && err == nil {
			status, err = ExitFailed, fmt.Errorf("close %s: %w", kind.Name, cerr)
		}
	}()
	if err := r.start(); err != nil {
		return ExitUsage, err
	}
	for {
		if status, leave, err := r.heed(requests); leave || err != nil {
			return status, err
		}
		if r.done >= o.Params.Epochs {
			return r.finish()
		}
		if err := r.next(ctx); err != nil {
			return ExitFailed, err
		}
	}
}

type run struct {
	kind    Kind
	options Options
	streams Streams

	work  Work
	done  int      // epochs
	hoard [][]byte // what GrowMB took
}

func (r *run) start() error {
	p := r.options.Params
	work, err := r.kind.New(p)
	if err != nil {
		return fmt.Errorf("prepare %s: %w", r.kind.Name, err)
	}
	r.work = work
	if r.options.State == "" {
		return nil
	}
	h, body, err := checkpoint.Load(r.options.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if want := r.options.header(r.kind.Name, 0); !h.Same(want) {
		return fmt.Errorf("%w: checkpoint %s is of other work: %+v, want %+v", ErrUsage, r.options.State, h, want)
	}
	if err := r.work.Load(body); err != nil {
		return fmt.Errorf("load checkpoint %s: %w", r.options.State, err)
	}
	r.done = h.Done
	return r.say("resumed from %s: %d of %d epochs are done\n", r.options.State, r.done, p.Epochs)
}

// heed acts on what was asked since the last epoch.
func (r *run) heed(requests <-chan Request) (status int, leave bool, err error) {
	for {
		var q Request
		select {
		case q = <-requests:
		default:
			return 0, false, nil
		}
		if r.done >= r.options.Params.Epochs {
			continue // nothing is left to save for
		}
		switch {
		case q == SaveAndLeave && r.options.IgnoreSignal:
			err = r.say("SIGUSR1 is ignored as asked\n")
		case q == SaveAndLeave && r.options.State == "":
			err = r.say("SIGUSR1: there is no --state to save to, going on\n")
		case r.options.State == "":
			return ExitTerminated, true, nil
		default:
			if err := r.save(); err != nil {
				return ExitFailed, true, err
			}
			status := ExitSaved
			if q == Terminate {
				status = ExitTerminated
			}
			return status, true, r.say("saved to %s: %d of %d epochs are done\n", r.options.State, r.done, r.options.Params.Epochs)
		}
		if err != nil {
			return ExitFailed, true, err
		}
	}
}

func (r *run) next(ctx context.Context) error {
	n := r.done + 1
	if n == r.options.FailAt {
		return fmt.Errorf("epoch %d: %w", n, ErrAsked)
	}
	r.grow()
	res, err := r.work.Epoch(ctx, n)
	if err != nil {
		return fmt.Errorf("epoch %d: %w", n, err)
	}
	r.done = n
	if every := r.options.SaveEvery; every > 0 && n%every == 0 && n < r.options.Params.Epochs {
		if err := r.save(); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("epoch %d/%d loss %.6g acc %.4f\n", n, r.options.Params.Epochs, res.Loss, res.Acc)
	if _, err := io.WriteString(r.streams.Out, line); err != nil {
		return fmt.Errorf("print epoch %d: %w", n, err)
	}
	return nil
}

func (r *run) save() error {
	return checkpoint.Save(r.options.State, r.options.header(r.kind.Name, r.done), r.work.Save)
}

// finish leaves no checkpoint behind, so that the next run begins anew.
func (r *run) finish() (int, error) {
	if r.options.State != "" {
		if err := os.Remove(r.options.State); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ExitFailed, fmt.Errorf("remove checkpoint: %w", err)
		}
	}
	if _, err := fmt.Fprintf(r.streams.Out, "done after %d epochs\n", r.done); err != nil {
		return ExitFailed, fmt.Errorf("print the last line: %w", err)
	}
	return ExitDone, nil
}

// grow takes memory and writes to every page of it, so that it counts.
func (r *run) grow() {
	if r.options.GrowMB == 0 {
		return
	}
	block := make([]byte, r.options.GrowMB<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = byte(r.done + 1)
	}
	r.hoard = append(r.hoard, block)
}

func (r *run) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(r.streams.Messages, format, args...); err != nil {
		return fmt.Errorf("print a message: %w", err)
	}
	return nil
}
