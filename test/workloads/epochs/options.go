package epochs

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"pitchpipe/test/workloads/checkpoint"
	"pitchpipe/test/workloads/team"
)

// Environment variables that a workload reads, once, when it starts.
const (
	EnvThreads = "THREADS"
	EnvBatch   = "BATCH_SIZE"
)

// Defaults of the flags and variables.
const (
	DefaultEpochs  = 40
	DefaultThreads = 1
	DefaultBatch   = 8
	maxThreads     = 1024
	maxBatch       = 4096
)

// ErrUsage is what every refused flag or variable wraps.
var ErrUsage = errors.New("usage")

// Options is a command line and environment that was understood.
type Options struct {
	Params       Params
	State        string // checkpoint file, empty = none
	SaveEvery    int    // also save after every so many epochs, 0 = only when asked
	FailAt       int    // fail instead of doing this epoch, 0 = never
	IgnoreSignal bool   // do as if SIGUSR1 had not come
	GrowMB       int    // take so many more MiB in every epoch
}

// Parse reads the arguments after the kind's name. getenv is os.Getenv or a
// stand-in; usage text and flag errors go to messages. flag.ErrHelp means that
// help was asked for and given.
func Parse(kind string, args []string, getenv func(string) string, messages io.Writer) (Options, error) {
	var o Options
	var epochLength float64
	fs := flag.NewFlagSet(kind, flag.ContinueOnError)
	fs.SetOutput(messages)
	fs.IntVar(&o.Params.Epochs, "epochs", DefaultEpochs, "epochs in all")
	fs.IntVar(&o.Params.Input, "input", 1, "which input: other numbers are other data of other sizes")
	fs.Uint64Var(&o.Params.Seed, "seed", 1, "seed of everything random")
	fs.Float64Var(&o.Params.Scale, "scale", 1, "amount of work per epoch, 1 = about half a second on one core")
	fs.StringVar(&o.State, "state", "", "checkpoint `file`: read if it is there, written when a signal asks for it")
	fs.IntVar(&o.SaveEvery, "save-every", 0, "also save after every so many epochs, 0 = only on a signal")
	fs.IntVar(&o.FailAt, "fail-at", 0, "fail instead of doing this epoch, 0 = never")
	fs.BoolVar(&o.IgnoreSignal, "ignore-signal", false, "do nothing on SIGUSR1")
	fs.IntVar(&o.GrowMB, "grow", 0, "take so many more `MiB` of memory in every epoch")
	fs.Float64Var(&epochLength, "epoch-seconds", 1, "length of an epoch of a kind that only waits")
	fs.StringVar(&o.Params.Journal, "journal", "", "`file` to append finished epochs to, for a kind that only waits")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("%w: unexpected argument %q", ErrUsage, fs.Arg(0))
	}
	threads, err := fromEnv(getenv, EnvThreads, DefaultThreads, maxThreads)
	if err != nil {
		return o, err
	}
	if o.Params.Batch, err = fromEnv(getenv, EnvBatch, DefaultBatch, maxBatch); err != nil {
		return o, err
	}
	if err := o.check(epochLength); err != nil {
		return o, err
	}
	o.Params.Team = team.New(threads)
	o.Params.EpochLength = time.Duration(epochLength * float64(time.Second))
	o.Params.Dir = "."
	return o, nil
}

func fromEnv(getenv func(string) string, name string, def, most int) (int, error) {
	text := getenv(name)
	if text == "" {
		return def, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 || v > most {
		return 0, fmt.Errorf("%w: %s=%q: want a whole number from 1 to %d", ErrUsage, name, text, most)
	}
	return v, nil
}

func (o Options) check(epochLength float64) error {
	for _, c := range []struct {
		flag string
		ok   bool
		want string
	}{
		{"epochs", o.Params.Epochs >= 1, "at least 1"},
		{"input", o.Params.Input >= 1, "at least 1"},
		{"scale", o.Params.Scale > 0 && o.Params.Scale <= 1000, "more than 0 and at most 1000"},
		{"save-every", o.SaveEvery >= 0, "0 or more"},
		{"save-every", o.SaveEvery == 0 || o.State != "", "a file to save to: give --state as well"},
		{"fail-at", o.FailAt >= 0, "0 or more"},
		{"grow", o.GrowMB >= 0 && o.GrowMB <= 1<<20, "0 to 1048576"},
		{"epoch-seconds", epochLength >= 0 && epochLength <= math.MaxInt32, "0 or more"},
	} {
		if !c.ok {
			return fmt.Errorf("%w: --%s: want %s", ErrUsage, c.flag, c.want)
		}
	}
	return nil
}

func (o Options) header(kind string, done int) checkpoint.Header {
	p := o.Params
	return checkpoint.Header{Kind: kind, Input: p.Input, Seed: p.Seed, Scale: p.Scale, Epochs: p.Epochs, Done: done}
}
