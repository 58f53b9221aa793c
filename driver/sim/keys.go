package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// key is one word of the #SIM language.
type key struct {
	name string
	want string // what is allowed
	set  func(b *Behaviour, text string) error
	get  func(b *Behaviour) string // empty = leave it out when printing
}

var errWant = errors.New("not allowed") // the key's want says the rest

// keys is the whole language, in the order in which it is printed.
func keys() []key {
	const huge = 1e12
	return []key{
		count("epochs", 1, 1_000_000, func(b *Behaviour) *int { return &b.Epochs }),
		number("seconds", 1e-6, 1e6, func(b *Behaviour) *float64 { return &b.Seconds }),
		number("parallel", 0, 1, func(b *Behaviour) *float64 { return &b.Parallel }),
		variable("threads", func(b *Behaviour) *string { return &b.Threads }),
		number("oversubscribe", 0, 100, func(b *Behaviour) *float64 { return &b.Oversubscribe }),
		count("saturate", 0, 1_000_000, func(b *Behaviour) *int { return &b.Saturate }),
		number("coherence", 0, 100, func(b *Behaviour) *float64 { return &b.Coherence }),
		number("drift", -0.99, 100, func(b *Behaviour) *float64 { return &b.Drift }),
		span("start", func(b *Behaviour) *time.Duration { return &b.Start }),

		number("noise", 0, 2, func(b *Behaviour) *float64 { return &b.Noise }),
		number("run_noise", 0, 2, func(b *Behaviour) *float64 { return &b.RunNoise }),
		number("rate_noise", 0, 2, func(b *Behaviour) *float64 { return &b.RateNoise }),
		flag("paired", func(b *Behaviour) *bool { return &b.Paired }),
		seed(),

		variable("batch", func(b *Behaviour) *string { return &b.Batch }),
		number("base", 1e-3, 1e9, func(b *Behaviour) *float64 { return &b.Base }),
		number("exponent", -4, 4, func(b *Behaviour) *float64 { return &b.Exponent }),

		number("loss", -1e9, 1e9, func(b *Behaviour) *float64 { return &b.Loss }),
		number("final_loss", -1e9, 1e9, func(b *Behaviour) *float64 { return &b.FinalLoss }),
		number("quality", -1e9, 1e9, func(b *Behaviour) *float64 { return &b.Quality }),
		number("quality_per_doubling", -1e9, 1e9, func(b *Behaviour) *float64 { return &b.QualityPerDoubling }),
		number("tau", 0, 1e9, func(b *Behaviour) *float64 { return &b.Tau }),

		memory(),
		checkpoint(),
		checkpointExit(),
		flag("ignore_signal", func(b *Behaviour) *bool { return &b.IgnoreSignal }),

		count("exit", 0, 255, func(b *Behaviour) *int { return &b.Exit }),
		count("at", 0, 1_000_000, func(b *Behaviour) *int { return &b.At }),
		count("hang_at", 0, 1_000_000, func(b *Behaviour) *int { return &b.HangAt }),
		flag("missing", func(b *Behaviour) *bool { return &b.Missing }),
		variable("show_env", func(b *Behaviour) *string { return &b.ShowEnv }),
		flag("show_settings", func(b *Behaviour) *bool { return &b.ShowSettings }),

		contended(),
		span("owner_changes_at", func(b *Behaviour) *time.Duration { return &b.OwnerChangesAt }),
		span("dies_at", func(b *Behaviour) *time.Duration { return &b.DiesAt }),

		span("queue_wait", func(b *Behaviour) *time.Duration { return &b.QueueWait }),
		span("closed_at", func(b *Behaviour) *time.Duration { return &b.ClosedAt }),
		word("closed_by", func(b *Behaviour) *string { return &b.ClosedBy }),

		number("watts_idle", 0, 1e6, func(b *Behaviour) *float64 { return &b.WattsIdle }),
		number("watts_core", 0, 1e6, func(b *Behaviour) *float64 { return &b.WattsCore }),
		choice("energy_source", energySources(), func(b *Behaviour) *string { return &b.EnergySource }),
		number("perf_running", 0, 1, func(b *Behaviour) *float64 { return &b.PerfRunning }),

		choice("profile", profileNames(), func(b *Behaviour) *string { return &b.Profile }),
		number("cpu", 0, 1, func(b *Behaviour) *float64 { return &b.Rates.CPU }),
		number("spin", 0, 1, func(b *Behaviour) *float64 { return &b.Rates.Spin }),
		number("system", 0, 1, func(b *Behaviour) *float64 { return &b.Rates.System }),
		number("minor_faults", 0, huge, func(b *Behaviour) *float64 { return &b.Rates.MinorFaults }),
		number("major_faults", 0, huge, func(b *Behaviour) *float64 { return &b.Rates.MajorFaults }),
		number("context_switches", 0, huge, func(b *Behaviour) *float64 { return &b.Rates.ContextSwitches }),
		number("involuntary", 0, 1, func(b *Behaviour) *float64 { return &b.Rates.Involuntary }),
		number("migrations", 0, huge, func(b *Behaviour) *float64 { return &b.Rates.Migrations }),
		number("read_chars", 0, huge, func(b *Behaviour) *float64 { return &b.Rates.ReadChars }),
		number("write_chars", 0, huge, func(b *Behaviour) *float64 { return &b.Rates.WriteChars }),
		number("read_bytes", 0, huge, func(b *Behaviour) *float64 { return &b.Rates.ReadBytes }),
		number("write_bytes", 0, huge, func(b *Behaviour) *float64 { return &b.Rates.WriteBytes }),
		number("memory_pressure", 0, 1, func(b *Behaviour) *float64 { return &b.Rates.MemoryPressure }),
		number("io_pressure", 0, 1, func(b *Behaviour) *float64 { return &b.Rates.IOPressure }),
	}
}

// energySources are the words of the exporter for where joules come from.
func energySources() []string {
	return []string{"rapl", "perf-power", "gpu", "bmc", "hwmon", "modelled", "replayed"}
}

func number(name string, low, high float64, field func(*Behaviour) *float64) key {
	return key{
		name: name,
		want: fmt.Sprintf("want a number from %g to %g", low, high),
		set: func(b *Behaviour, text string) error {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(v) || v < low || v > high || strings.ContainsAny(text, "xXpP_") {
				return errWant
			}
			*field(b) = v
			return nil
		},
		get: func(b *Behaviour) string { return strconv.FormatFloat(*field(b), 'g', -1, 64) },
	}
}

func count(name string, low, high int, field func(*Behaviour) *int) key {
	return key{
		name: name,
		want: fmt.Sprintf("want a whole number from %d to %d", low, high),
		set: func(b *Behaviour, text string) error {
			v, err := strconv.Atoi(text)
			if err != nil || v < low || v > high {
				return errWant
			}
			*field(b) = v
			return nil
		},
		get: func(b *Behaviour) string { return strconv.Itoa(*field(b)) },
	}
}

func span(name string, field func(*Behaviour) *time.Duration) key {
	return key{
		name: name,
		want: "want a duration from 0s to 720h, such as 5s or 1.5m",
		set: func(b *Behaviour, text string) error {
			v, err := time.ParseDuration(text)
			if err != nil || v < 0 || v > maxEpoch {
				return errWant
			}
			*field(b) = v
			return nil
		},
		get: func(b *Behaviour) string { return field(b).String() },
	}
}

func flag(name string, field func(*Behaviour) *bool) key {
	return key{
		name: name,
		want: "want true or false",
		set: func(b *Behaviour, text string) error {
			if text != "true" && text != "false" {
				return errWant
			}
			*field(b) = text == "true"
			return nil
		},
		get: func(b *Behaviour) string { return strconv.FormatBool(*field(b)) },
	}
}

func choice(name string, words []string, field func(*Behaviour) *string) key {
	return key{
		name: name,
		want: "want one of " + strings.Join(words, ", "),
		set: func(b *Behaviour, text string) error {
			if !slices.Contains(words, text) {
				return errWant
			}
			*field(b) = text
			return nil
		},
		get: func(b *Behaviour) string { return *field(b) },
	}
}

func variable(name string, field func(*Behaviour) *string) key {
	return key{
		name: name,
		want: "want the name of an environment variable",
		set: func(b *Behaviour, text string) error {
			for i, r := range text {
				letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
				if !letter && (i == 0 || r < '0' || r > '9') {
					return errWant
				}
			}
			*field(b) = text
			return nil
		},
		get: func(b *Behaviour) string { return *field(b) },
	}
}
