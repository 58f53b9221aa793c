package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// Environment variables that a workload reads, once, when it starts.
const (
	envThreads = "THREADS"
	envBatch   = "BATCH_SIZE"
)

var errUsage = errors.New("usage")

// options is a command line and environment that was understood.
type options struct {
	params params
	state  string // checkpoint file, empty = none
	growMB int    // take so many more MiB in every epoch
}

// params is what a piece of work is made from. Equal params, threads and batch size
// included, give equal results; threads alone never change them.
type params struct {
	input       int           // which input, from 1: another number is other data of another size
	seed        uint64        // of everything random
	scale       float64       // of the amount of work per epoch, 1 = about half a second on one core
	epochs      int           // planned in all
	batch       int           // examples per update, where the work learns in batches
	team        *team         // the threads to use
	dir         string        // where to put files
	epochLength time.Duration // of work that only waits
	journal     string        // file to note finished epochs in, for work that only waits; empty = none
}

// size scales a default size to the input: inputs 1 to 5 are 1, 1.25, 0.8, 1.1 and 0.9
// times it, then it begins again. It returns at least least.
func (p params) size(def, least int) int {
	share := [...]float64{1, 1.25, 0.8, 1.1, 0.9}[(max(p.input, 1)-1)%5]
	return max(int(float64(def)*share*p.scale), least)
}

// stream mixes the seed, the input and a number of the caller's choice into the seed of one
// random stream.
func (p params) stream(n uint64) (seed1, seed2 uint64) {
	return splitMix(p.seed ^ splitMix(uint64(p.input))), splitMix(n + 0x51_7c_c1_b7_27_22_0a_95)
}

// mix folds one more value into a digest.
func mix(digest, v uint64) uint64 { return splitMix(digest ^ splitMix(v)) }

// splitMix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func splitMix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// parse reads the arguments after the kind's name. Usage text and flag errors go to
// messages. flag.ErrHelp means that the user asked for help and got it.
func parse(kind string, args []string, getenv func(string) string, messages io.Writer) (options, error) {
	o := options{params: params{dir: "."}}
	var epochLength float64
	fs := flag.NewFlagSet(kind, flag.ContinueOnError)
	fs.SetOutput(messages)
	fs.IntVar(&o.params.epochs, "epochs", 40, "epochs in all")
	fs.IntVar(&o.params.input, "input", 1, "which input: other numbers are other data of other sizes")
	fs.Uint64Var(&o.params.seed, "seed", 1, "seed of everything random")
	fs.Float64Var(&o.params.scale, "scale", 1, "amount of work per epoch, 1 = about half a second on one core")
	fs.StringVar(&o.state, "state", "", "checkpoint `file`: read if it is there, written when a signal asks for it")
	fs.IntVar(&o.growMB, "grow", 0, "take so many more `MiB` of memory in every epoch")
	fs.Float64Var(&epochLength, "epoch-seconds", 1, "length of an epoch of a kind that only waits")
	fs.StringVar(&o.params.journal, "journal", "", "`file` to append finished epochs to, for a kind that only waits")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("%w: unexpected argument %q", errUsage, fs.Arg(0))
	}
	threads, err := fromEnv(getenv, envThreads, 1, 1024)
	if err != nil {
		return o, err
	}
	if o.params.batch, err = fromEnv(getenv, envBatch, 8, 4096); err != nil {
		return o, err
	}
	o.params.team = newTeam(threads)
	o.params.epochLength = time.Duration(epochLength * float64(time.Second))
	return o, o.check(epochLength)
}

func fromEnv(getenv func(string) string, name string, def, most int) (int, error) {
	text := getenv(name)
	if text == "" {
		return def, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 || v > most {
		return 0, fmt.Errorf("%w: %s=%q: want a whole number from 1 to %d", errUsage, name, text, most)
	}
	return v, nil
}

func (o options) check(epochLength float64) error {
	for _, c := range []struct {
		flag string
		ok   bool
		want string
	}{
		{"epochs", o.params.epochs >= 1, "at least 1"},
		{"input", o.params.input >= 1, "at least 1"},
		{"scale", o.params.scale > 0 && o.params.scale <= 1000, "more than 0 and at most 1000"},
		{"grow", o.growMB >= 0 && o.growMB <= 1<<20, "0 to 1048576"},
		{"epoch-seconds", epochLength >= 0 && epochLength <= math.MaxInt32, "0 or more"},
	} {
		if !c.ok {
			return fmt.Errorf("%w: --%s: want %s", errUsage, c.flag, c.want)
		}
	}
	return nil
}
