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
		span("start", func(b *Behaviour) *time.Duration { return &b.Start }),

		number("noise", 0, 2, func(b *Behaviour) *float64 { return &b.Noise }),
		number("run_noise", 0, 2, func(b *Behaviour) *float64 { return &b.RunNoise }),
		number("rate_noise", 0, 2, func(b *Behaviour) *float64 { return &b.RateNoise }),
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

		contended(),
		span("owner_changes_at", func(b *Behaviour) *time.Duration { return &b.OwnerChangesAt }),
		span("dies_at", func(b *Behaviour) *time.Duration { return &b.DiesAt }),

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
	return []string{"rapl", "perf-power", "gpu", "bmc", "modelled", "replayed"}
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

func seed() key {
	return key{
		name: "seed",
		want: "want a whole number",
		set: func(b *Behaviour, text string) (err error) {
			if b.Seed, err = strconv.ParseInt(text, 10, 64); err != nil {
				return errWant
			}
			return nil
		},
		get: func(b *Behaviour) string { return strconv.FormatInt(b.Seed, 10) },
	}
}

func memory() key {
	return key{
		name: "memory",
		want: "want an amount of memory up to 64TiB, such as 512MiB or 2GiB",
		set: func(b *Behaviour, text string) error {
			digits, factor := text, int64(1)
			for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
				if rest, ok := strings.CutSuffix(text, unit); ok {
					digits, factor = rest, 1<<(10*(i+1))
				}
			}
			v, err := strconv.ParseInt(digits, 10, 64)
			if err != nil || v < 0 || v > 64<<40/factor {
				return errWant
			}
			b.Memory = v * factor
			return nil
		},
		get: func(b *Behaviour) string { return strconv.FormatInt(b.Memory, 10) },
	}
}

func checkpoint() key {
	k := span("checkpoint", func(b *Behaviour) *time.Duration { return &b.Checkpoint })
	set, get := k.set, k.get
	k.set = func(b *Behaviour, text string) error {
		if err := set(b, text); err != nil {
			return err
		}
		b.Saves = true
		return nil
	}
	k.get = func(b *Behaviour) string {
		if !b.Saves {
			return ""
		}
		return get(b)
	}
	return k
}

func checkpointExit() key {
	k := count("checkpoint_exit", 1, 255, func(b *Behaviour) *int { return &b.CheckpointExit })
	k.want += ", or none"
	set, get := k.set, k.get
	k.set = func(b *Behaviour, text string) error {
		if text == "none" {
			b.CheckpointExit = 0
			return nil
		}
		return set(b, text)
	}
	k.get = func(b *Behaviour) string {
		if b.CheckpointExit == 0 {
			return "none"
		}
		return get(b)
	}
	return k
}

func contended() key {
	return key{
		name: "contended",
		want: "want epochs such as 3 or 3-5 or 3-5,8",
		set: func(b *Behaviour, text string) error {
			var spans []Span
			for part := range strings.SplitSeq(text, ",") {
				from, to, ok := strings.Cut(part, "-")
				if !ok {
					to = from
				}
				first, err1 := strconv.Atoi(from)
				last, err2 := strconv.Atoi(to)
				if err1 != nil || err2 != nil || first < 1 || last < first {
					return errWant
				}
				spans = append(spans, Span{first, last})
			}
			b.Contended = spans
			return nil
		},
		get: func(b *Behaviour) string {
			parts := make([]string, len(b.Contended))
			for i, s := range b.Contended {
				parts[i] = fmt.Sprintf("%d-%d", s.First, s.Last)
			}
			return strings.Join(parts, ",")
		},
	}
}
