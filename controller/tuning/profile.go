package tuning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// JobKind names jobs that are runs of the same thing.
type JobKind struct {
	Owner       string `json:"owner"`
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"` // of the command, inputs and knob values left out
}

// String is a canonical text: "alice/train@1f2e3d4c".
func (k JobKind) String() string { return k.Owner + "/" + k.Name + "@" + k.Fingerprint }

// Epoch is one epoch of one attempt as it was measured.
type Epoch struct {
	Number   int       `json:"number"`  // as the job counts them, from 1
	Attempt  int       `json:"attempt"` // from 1
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Loss     *float64  `json:"loss,omitempty"`
	Quality  *float64  `json:"quality,omitempty"`
	Joules   *Joules   `json:"joules,omitempty"` // nil: not measured, which is not zero
	Source   string    `json:"source,omitempty"` // rapl, perf-power, gpu, bmc, hwmon, modelled, replayed
	Settings Settings  `json:"settings"`
	Warmup   bool      `json:"warmup,omitempty"`   // among the first of its attempt
	Polluted bool      `json:"polluted,omitempty"` // other work on the node disturbed it
	Machine  string    `json:"machine,omitempty"`  // kind of machine that it ran on, as in Profile; empty = not known
	Crowded  bool      `json:"crowded,omitempty"`  // polluted by others that used its cores, see InCompany
	Siblings int       `json:"siblings,omitempty"` // other jobs of its kind that ran on its node
	Inner    bool      `json:"inner,omitempty"`    // a later epoch's report ended it too, as where the job's lines are buffered: its time is that report's mean
	Together int       `json:"together,omitempty"` // epochs that its report ended; 0 = it alone
	Cut      bool      `json:"cut,omitempty"`      // it did not end: its attempt was ended first, so it would have taken longer

	Diverged bool `json:"diverged,omitempty"` // its loss or quality is not a finite number
}

// Modelled is the source of joules that were computed, not measured. They support
// no claim and enforce no budget unless the site opts in.
const Modelled = "modelled"

// Part is the source of the joules of the first of so many nodes, which are not those of the job.
func Part(source string, nodes int) string { return fmt.Sprintf("%s, 1 of %d nodes", source, nodes) }

// IsPart reports whether a source is one of Part: it supports no claim and has no price.
func IsPart(source string) bool { return strings.Contains(source, ", 1 of ") }

// IsModelled reports whether joules of a source are computed, those of a part of a job too.
func IsModelled(source string) bool {
	return source == Modelled || strings.HasPrefix(source, Modelled+", ")
}

// Replayed is the source of joules that a table recorded, of whole nodes as a rule.
const Replayed = "replayed"

// Seconds is the length of the epoch.
func (e Epoch) Seconds() float64 { return e.End.Sub(e.Start).Seconds() }

// Counts reports whether the epoch may judge a setting at all.
func (e Epoch) Counts() bool { return !e.Warmup && !e.Polluted && e.Seconds() > 0 }

// Compare orders epochs by attempt and number.
func (e Epoch) Compare(o Epoch) int {
	return cmp.Or(cmp.Compare(e.Attempt, o.Attempt), cmp.Compare(e.Number, o.Number))
}

// Unbroken reports whether no epoch between the first and the last is missing, as where an exporter was restarted.
func Unbroken(epochs []Epoch) bool {
	seen, first := map[int]bool{}, Done(epochs)
	for _, e := range epochs {
		seen[e.Number], first = true, min(first, e.Number)
	}
	return len(epochs) == 0 || len(seen) == Done(epochs)-first+1
}

// Done is the number of epochs that ended, over all attempts.
func Done(epochs []Epoch) int {
	done := 0
	for _, e := range epochs {
		done = max(done, e.Number)
	}
	return done
}

// Flag says what limits the worth of a profile.
type Flag string

// The quality flags of a profile.
const (
	FlagFewSamples  Flag = "few-samples" // fewer than three samples in its windows
	FlagContended   Flag = "contended"   // others used the node's CPUs, or the hypervisor took them
	FlagMultiplexed Flag = "multiplexed" // perf counters shared the PMU for much of the time
	FlagNoPerf      Flag = "no-perf"     // no perf events at all; the schema says so too
)

// Profile is what the early epochs of a job looked like. Features are ratios and rates in natural
// logs where they span decades; a name that is not in the map is missing, which is not zero.
type Profile struct {
	Schema   string             `json:"schema"` // name and version of the feature set, such as "sw/1"
	Features map[string]float64 `json:"features"`
	Settings Settings           `json:"settings"` // cores and threads it was taken under
	Machine  string             `json:"machine"`  // kind of machine: CPU model and core count
	Epochs   int                `json:"epochs"`   // epochs that went in
	Samples  int                `json:"samples"`  // samples that went in
	Seconds  float64            `json:"seconds"`  // time covered
	PeakRSS  Bytes              `json:"peak_rss"` // largest resident memory seen, 0 = unknown
	Flags    []Flag             `json:"flags,omitempty"`
	Other    bool               `json:"other,omitempty"` // of a run that did other work than the job it stands for
}

// Poor reports whether the profile says little about other runs.
func (p Profile) Poor() bool {
	return slices.Contains(p.Flags, FlagContended) || slices.Contains(p.Flags, FlagFewSamples)
}

// Class is what a profile resembles, or honestly nothing.
type Class struct {
	ID        string  `json:"id"`     // empty when unknown
	Reason    Reason  `json:"reason"` // why this class, or why none
	Distance  float64 `json:"distance"`
	Radius    float64 `json:"radius"`     // of the nearest class; further away is unknown
	NearestID string  `json:"nearest_id"` // the nearest class, even when too far
	Model     string  `json:"model"`      // which fit of the model said so

	// RunnerUpID is the class that it resembles next, where that cannot be told from
	// the nearest (ReasonAmbiguous); empty otherwise.
	RunnerUpID string `json:"runner_up_id,omitempty"`
	// Support is how many runs the nearest class was learned from. A class of one
	// run has a name and no experience yet: what only one job showed moves no other
	// kind of job.
	Support  int    `json:"support,omitempty"`
	Cautions []Flag `json:"cautions,omitempty"` // the flags of the profile that the answer rests on
	// Neighbours are the nearest classes that it could be compared with, the one where it
	// lies deepest first: the runner-up is the second, alike or not.
	Neighbours []Neighbour `json:"neighbours,omitempty"`
}

// Neighbour is a class and how far a profile is from it.
type Neighbour struct {
	ID       string  `json:"id"`
	Distance float64 `json:"distance"`
	Radius   float64 `json:"radius"`
}

// Known reports whether the profile belongs to a class.
func (c Class) Known() bool { return c.ID != "" }

// Span is the time between two moments.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Meet reports whether a part of the time from begin to end lies in one of the spans.
func Meet(spans []Span, begin, end time.Time) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return begin.Before(s.To) && s.From.Before(end) })
}
