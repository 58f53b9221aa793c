package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Exit statuses.
const (
	exitDone       = 0
	exitFailed     = 1   // the work failed
	exitUsage      = 2   // a flag, a variable or the checkpoint is unusable
	exitSaved      = 85  // saved after SIGUSR1: start it again and it continues
	exitTerminated = 143 // saved after SIGTERM
)

// request is what a signal asks of a run.
type request uint8

const (
	saveAndLeave request = iota // SIGUSR1: exit with exitSaved
	terminate                   // SIGTERM: exit with exitTerminated
)

// work is a program that runs in epochs, on one goroutine. A work that is an io.Closer is
// closed when the run ends; one with restored() is called after its state was read.
type work interface {
	// epoch does epoch n, counted from 1. The caller calls it once for each n, in order.
	epoch(ctx context.Context, n int) (result, error)

	// state is everything that the coming epochs depend on and that a new work of the same
	// params cannot make again, as pointers and slices of what encoding/binary knows.
	state() []any
}

// result is what an epoch reached.
type result struct {
	loss float64 // lower is better
	acc  float64 // between 0 and 1, higher is better
}

// right is the result of an epoch that checked itself: the share of what was wrong.
func right(wrong, all int) result {
	share := float64(wrong) / float64(all)
	return result{share, 1 - share}
}

// digest is the whole state of the kinds that make everything else again from the seed.
type digest uint64

func (d *digest) state() []any { return []any{d} }

func (d *digest) mix(v uint64) { *d = digest(mix(uint64(*d), v)) }

// player is one run.
type player struct {
	kind          kind
	options       options
	out, messages io.Writer

	work  work
	done  int      // epochs
	hoard [][]byte // what growMB took
}

// play makes the work, takes it to where its checkpoint says it was, and does what is left.
// It looks at requests between two epochs, so that no epoch is cut; those that came before
// play count before the first. It returns the exit status; the error says why where that is
// exitFailed or exitUsage.
//
// Without a file to save to, play refuses saveAndLeave with a message and goes on: leaving
// would throw the work away.
func play(ctx context.Context, k kind, o options, requests <-chan request, out, messages io.Writer) (status int, err error) {
	r := player{kind: k, options: o, out: out, messages: messages}
	if r.work, err = k.start(o.params); err != nil {
		return exitUsage, fmt.Errorf("prepare %s: %w", k.name, err)
	}
	if c, ok := r.work.(io.Closer); ok {
		defer func() {
			if cerr := c.Close(); cerr != nil && err == nil {
				status, err = exitFailed, fmt.Errorf("close %s: %w", k.name, cerr)
			}
		}()
	}
	if err := r.resume(); err != nil {
		return exitUsage, err
	}
	for {
		if status, leave, err := r.answer(requests); leave || err != nil {
			return status, err
		}
		if r.done >= o.params.epochs {
			return r.finish()
		}
		if err := r.next(ctx); err != nil {
			return exitFailed, err
		}
	}
}

func (r *player) resume() error {
	if r.options.state == "" {
		return nil
	}
	done, err := load(r.options.state, r.header(), r.work)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r.done = done
	say(r.messages, "resumed from %s: %d of %d epochs are done\n", r.options.state, r.done, r.options.params.epochs)
	return nil
}

// answer acts on what was asked since the last epoch.
func (r *player) answer(requests <-chan request) (status int, leave bool, err error) {
	for {
		var q request
		select {
		case q = <-requests:
		default:
			return 0, false, nil
		}
		switch {
		case r.done >= r.options.params.epochs: // nothing is left to save for
		case q == saveAndLeave && r.options.state == "":
			say(r.messages, "SIGUSR1: there is no --state to save to, going on\n")
		case r.options.state == "":
			return exitTerminated, true, nil
		default:
			if err := save(r.options.state, r.header(), r.work); err != nil {
				return exitFailed, true, err
			}
			say(r.messages, "saved to %s: %d of %d epochs are done\n", r.options.state, r.done, r.options.params.epochs)
			if q == terminate {
				return exitTerminated, true, nil
			}
			return exitSaved, true, nil
		}
	}
}

func (r *player) next(ctx context.Context) error {
	n := r.done + 1
	if r.options.growMB > 0 {
		r.grow()
	}
	res, err := r.work.epoch(ctx, n)
	if err != nil {
		return fmt.Errorf("epoch %d: %w", n, err)
	}
	r.done = n
	if _, err := fmt.Fprintf(r.out, "epoch %d/%d loss %.6g acc %.4f\n", n, r.options.params.epochs, res.loss, res.acc); err != nil {
		return fmt.Errorf("print epoch %d: %w", n, err)
	}
	return nil
}

// finish leaves no checkpoint behind, so that the next run starts from the beginning.
func (r *player) finish() (int, error) {
	if r.options.state != "" {
		if err := os.Remove(r.options.state); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return exitFailed, fmt.Errorf("remove checkpoint: %w", err)
		}
	}
	if _, err := fmt.Fprintf(r.out, "done after %d epochs\n", r.done); err != nil {
		return exitFailed, fmt.Errorf("print the last line: %w", err)
	}
	return exitDone, nil
}

// grow takes memory and writes to every page of it, so that it counts.
func (r *player) grow() {
	block := make([]byte, r.options.growMB<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = byte(r.done + 1)
	}
	r.hoard = append(r.hoard, block)
}

func (r *player) header() header {
	p := r.options.params
	return header{Kind: r.kind.name, Input: p.input, Seed: p.seed, Scale: p.scale, Epochs: p.epochs, Done: r.done}
}
