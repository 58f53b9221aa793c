package stanza

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"pitchpipe/controller/tuning"
)

// Type says how the value of a key is read.
type Type string

// The types.
const (
	TypeWord     Type = "word"      // one of Key.Words
	TypeText     Type = "text"      // any text without control characters
	TypePattern  Type = "pattern"   // regular expression (RE2)
	TypeNumber   Type = "number"    // from Key.Low to Key.High
	TypeInteger  Type = "integer"   // from Key.Low to Key.High
	TypeBool     Type = "boolean"   // true or false
	TypeDuration Type = "time"      // 60s, 90m, 4h
	TypeEnergy   Type = "energy"    // 2MJ, 0.5kWh
	TypeSignal   Type = "signal"    // name, with or without SIG
	TypeEnv      Type = "variable"  // name of an environment variable
	TypeFlag     Type = "flag"      // command-line flag
	TypeValue    Type = "value"     // a value of the knob: by its name a number, an amount or a word
	TypeValues   Type = "values"    // a list of them
	TypeKnob     Type = "knob name" // name of another knob
	TypeWords    Type = "words"     // a list of different ones of Key.Words
	TypeWhen     Type = "condition" // KNOB=VALUE
)

// Key describes one key of the stanza.
type Key struct {
	Block     string // the block that it is in; empty = the top level
	Name      string
	Type      Type
	Default   string               // as written; empty = none
	Words     []string             // of TypeWord and TypeWords, and those that stand for a number of TypeNumber
	Low, High float64              // of TypeNumber and TypeInteger
	Allowed   string               // what is allowed, as errors and the reference say it
	Meaning   string               // one sentence
	Elsewhere string               // what other tools call it, words with blanks between them
	example   any                  // a literal
	field     func(s *subject) any // a pointer to what the key sets
}

// HCL is an example of the key in a Nomad job file.
func (k Key) HCL() string { return k.Name + " = " + hcl(k.example) }

// Line is an example of the key in a #TUNE line.
func (k Key) Line() string { return k.Name + "=" + line(k.example) }

// Blocks lists the block types in the order of the documentation; the first is
// the top level.
func Blocks() []string {
	return []string{"", "knob", "progress", "quality", "profile", "checkpoint", "budget", "search", "action"}
}

// none lifts a bound.
const none = "none"

// most is the largest count that is taken for a real one.
const most = 1e9

// exact is the largest whole number that every format of a job file holds exactly.
const exact = 1 << 53

// Keys lists every key that a stanza may have, block by block.
func Keys() []Key {
	return []Key{
		{
			Name: "mode", Type: TypeWord, Default: string(tuning.DefaultMode), Words: words(tuning.Modes()),
			Meaning: "What the tuner may do: only watch, also recommend better settings, or also apply them.",
			example: "apply", field: func(s *subject) any { return (*string)(&s.Mode) },
		},
		{
			Name: "objective", Type: TypeWord, Default: string(tuning.DefaultObjective), Words: words(tuning.Objectives()),
			Meaning: "What is minimised: joules per epoch, seconds per epoch, their product, a blend of both, or what the site charges. Where trials of a search wait for cores, time is that of the search. With cost, a search ranks trials that reached its target by core-hours.",
			example: "energy", field: func(s *subject) any { return (*string)(&s.Objective) },
		},
		{
			Name: "weight", Type: TypeNumber, Default: "0.5", High: 1, Allowed: "a number from 0 to 1, only with objective blend",
			Meaning: "The share of energy in the blend; the rest is time.",
			example: bare("0.7"), field: func(s *subject) any { return &s.Weight },
		},
		{
			Name: "max_slowdown", Type: TypeNumber, Default: fmt.Sprintf("%.2f", tuning.DefaultMaxSlowdown), Words: []string{none},
			Low: 1, High: math.MaxFloat64, Allowed: "a number of at least 1, or none",
			Meaning: "An epoch may take at most this many times as long as it does untuned; none lifts the bound. With objective time there is no bound by default.",
			example: bare("1.1"), field: func(s *subject) any { return &s.MaxSlowdown },
		},
		{
			Block: "knob", Name: "env", Type: TypeEnv,
			Allowed: "the name of an environment variable, but none that a shell, linker, language runtime or scheduler acts on, such as PATH, LD_* or SLURM_*",
			Meaning: "The environment variable that carries the value to the job.",
			example: "BATCH_SIZE", field: func(s *subject) any { return &s.knob.Env },
		},
		{
			Block: "knob", Name: "arg", Type: TypeFlag, Allowed: "a command-line flag such as --learning-rate, not in a batch script",
			Meaning: "The command-line flag that carries the value: \"--k v\" and \"--k=v\" are replaced, otherwise it is appended.",
			example: "--learning-rate", field: func(s *subject) any { return &s.knob.Arg },
		},
		{
			Block: "knob", Name: "live", Type: TypeBool, Default: "false", Allowed: "true or false",
			Meaning: "The value reaches the job through the file that PITCHPIPE_SETTINGS names. It changes when the job restarts.",
			example: bare("true"), field: func(s *subject) any { return &s.knob.Live },
		},
		{
			Block: "knob", Name: "follows", Type: TypeKnob, Allowed: "the name of another knob that follows none, without quality, values, min, max, scale, default and when",
			Meaning: "The knob equals this other knob. Threads whose variable the job file does not set are the program's own until then, and a thread per core is tried where too many or too few seem to work.",
			example: "cores", field: func(s *subject) any { return &s.knob.Follows },
		},
		{
			Block: "knob", Name: "values", Type: TypeValues, Allowed: "a list of different values, without min and max",
			Meaning:   "The values that may be tried.",
			Elsewhere: "choices categories list feasibleSpace parameters hyperparameters search_space param_space parameterType step q suggest_categorical",
			example:   []any{bare("32"), bare("64"), bare("128")}, field: func(s *subject) any { return &s.knob.Values },
		},
		{
			Block: "knob", Name: "min", Type: TypeValue, Allowed: "a number below max, without values",
			Meaning:   "The least value that may be tried.",
			Elsewhere: "low lower minval suggest_float suggest_int suggest_uniform suggest_loguniform",
			example:   bare("0.001"), field: func(s *subject) any { return &s.knob.Min },
		},
		{
			Block: "knob", Name: "max", Type: TypeValue, Allowed: "a number above min, without values",
			Meaning:   "The greatest value that may be tried.",
			Elsewhere: "high upper maxval",
			example:   bare("0.1"), field: func(s *subject) any { return &s.knob.Max },
		},
		{
			Block: "knob", Name: "scale", Type: TypeWord, Default: string(tuning.Linear), Words: words(tuning.Scales()),
			Allowed:   "linear, log or pow2, only with min and max; log and pow2 need min above 0",
			Meaning:   "How the values between min and max are spaced.",
			Elsewhere: "distribution type log",
			example:   "log", field: func(s *subject) any { return (*string)(&s.knob.Scale) },
		},
		{
			Block: "knob", Name: "default", Type: TypeValue, Allowed: "one value, not for cores and memory",
			Meaning: "The untuned value; a hyperparameter needs it unless the job file shows the value in env or args, or a search sets it.",
			example: bare("32"), field: func(s *subject) any { return &s.knob.Default },
		},
		{
			Block: "knob", Name: "quality", Type: TypeWord, Words: []string{tuning.QualitySame},
			Meaning: "The knob changes what an epoch costs and not what the job learns, so it may be tried and moved within a run. " +
				"Any other knob that is no system knob changes only before a run starts.",
			example: tuning.QualitySame, field: func(s *subject) any { return &s.knob.Quality },
		},
		{
			Block: "knob", Name: "when", Type: TypeWhen,
			Allowed: "KNOB=VALUE: another knob that the search varies and one of its values, only with a search block",
			Meaning: "The knob counts only in the trials in which the other knob has this value.", Elsewhere: "condition conditions",
			example: "optimizer=sgd", field: func(s *subject) any { return &s.knob.When },
		},
		{
			Block: "progress", Name: "pattern", Type: TypePattern,
			Allowed:   "a regular expression with the named group epoch, and if wanted total, loss and quality",
			Meaning:   "A line of the job that matches says that this epoch ended. Epochs count from 1. The job has to flush each line, as with print(..., flush=True) or python -u. Lines of more than 64 KiB do not count.",
			Elsewhere: "metric metric.name objectiveMetricName objective.objectiveMetricName metricsCollectorSpec metricsCollector",
			example:   `epoch (?P<epoch>\d+)/(?P<total>\d+)`, field: func(s *subject) any { return &s.Progress.Pattern },
		},
		{
			Block: "progress", Name: "file", Type: TypeText, Allowed: "a path, only with pattern",
			Meaning: "The file that the lines stand in, instead of the job's output.",
			example: "train.log", field: func(s *subject) any { return &s.Progress.File },
		},
		{
			Block: "progress", Name: "report", Type: TypeBool, Default: "false", Allowed: "true or false, instead of pattern",
			Meaning: "The job reports its epochs to the exporter's socket itself.",
			example: bare("true"), field: func(s *subject) any { return &s.Progress.Report },
		},
		integer("progress", "total", "", 1, "50", "The total epochs, if no output line has them.", "", func(s *subject) any { return &s.Progress.Total }),
		{
			Block: "quality", Name: "direction", Type: TypeWord, Words: []string{"max", "min"},
			Meaning:   "Whether more or less of the quality is better; needed.",
			Elsewhere: "objective.type goal metric.goal type smaller_is_better maximize minimize",
			example:   "max", field: func(s *subject) any { return &s.guard.Direction },
		},
		{
			Block: "quality", Name: "max_loss", Type: TypeNumber, Default: "0.01", High: 1, Allowed: "a number from 0 to 1",
			Meaning: "How much worse a tuned job may end, as a share of the untuned quality.",
			example: bare("0.01"), field: func(s *subject) any { return &s.guard.MaxLoss },
		},
		{
			Block: "quality", Name: "target", Type: TypeNumber, Low: -math.MaxFloat64, High: math.MaxFloat64, Allowed: "a number",
			Meaning:   "The quality at which the job is done: whole runs are compared by what they cost until they first reach it, instead of until their last epoch.",
			Elsewhere: "objective.goal goal metric.target target_value",
			example:   bare("0.97"), field: func(s *subject) any { return &s.guard.Target },
		},
		{
			Block: "quality", Name: "measures", Type: TypeWords, Words: tuning.SearchMeasures(),
			Allowed: "a list of quality, energy, time and cost that begins with quality, only with a search block",
			Meaning: "What the trials of a search are compared by; by default by quality alone. With several no single trial is the best.", Elsewhere: "directions",
			example: []any{tuning.ByQuality, tuning.ByEnergy}, field: func(s *subject) any { return &s.guard.Measures },
		},
		integer("profile", "warmup_epochs", "1", 0, "1", "The first epochs, which are not judged.", "", func(s *subject) any { return &s.Profile.WarmupEpochs }),
		integer("profile", "epochs", "2", 1, "2", "The epochs after them that make the profile.", "", func(s *subject) any { return &s.Profile.Epochs }),
		{
			Block: "checkpoint", Name: "signal", Type: TypeSignal, Default: tuning.DefaultSignal,
			Allowed: "the name of a signal that a job can catch, such as SIGUSR1 or USR1",
			Meaning: "The signal that asks the job to save.",
			example: "SIGUSR1", field: func(s *subject) any { return &s.save.Signal },
		},
		{
			Block: "checkpoint", Name: "grace", Type: TypeDuration, Default: "60s", Allowed: "a time with its unit, of more than 0s and at most 1h",
			Meaning: "How long the job may take to save; after that the move is abandoned and the job runs on.",
			example: "60s", field: func(s *subject) any { return &s.save.Grace },
		},
		{
			Block: "checkpoint", Name: "exit", Type: TypeInteger, Low: 1, High: 255, Allowed: "a whole number from 1 to 255",
			Meaning: "The exit status that says: saved, start me again.",
			example: bare("85"), field: func(s *subject) any { return &s.save.Exit },
		},
		{
			Block: "checkpoint", Name: "done", Type: TypePattern, Allowed: "a regular expression",
			Meaning: "The output line that says: saved, and running on.",
			example: "checkpoint written", field: func(s *subject) any { return &s.save.Done },
		},
		{
			Block: "budget", Name: "energy", Type: TypeEnergy, Allowed: "an amount of energy above 0 with its unit, such as 2MJ or 0.5kWh",
			Meaning: "The joules of all attempts after which tuning ends; without it there is no bound.",
			example: "2MJ", field: func(s *subject) any { return &s.Budget.Energy },
		},
		{
			Block: "budget", Name: "time", Type: TypeDuration, Allowed: "a time above 0 with its unit, such as 90m or 4h",
			Meaning: "The time of all attempts after which tuning ends; without it there is no bound.",
			example: "4h", field: func(s *subject) any { return &s.Budget.Time },
		},
		integer("budget", "restarts", "2", 0, "2", "How often the job may be moved or rolled back.", "", func(s *subject) any { return &s.Budget.Restarts }),
		integer("budget", "probes", "4", 0, "4", "How many settings may be tried on the early epochs. In a search, so many trials may also try one from their start.", "", func(s *subject) any { return &s.Budget.Probes }),
		integer("budget", "returns", "0", 0, "6", "How many whole runs of this kind of job may use a setting that is not yet known to be better, so that later runs profit. "+
			"A job that cannot be moved is tuned in this way. 0: only known settings are used.",
			"", func(s *subject) any { return &s.Budget.Returns }),
		{
			Block: "search", Name: "method", Type: TypeWord, Default: string(tuning.DefaultMethod), Words: words(tuning.SearchMethods()),
			Meaning: "How trials are picked and ended early: by successive halving (asha), by several brackets of it (hyperband), " +
				"with hyperparameters from a Gaussian process (gp, asha+gp), or whole trials at random or over a grid.",
			Elsewhere: "algorithm algorithm.algorithmName sampler pruner searcher searcher.name early_terminate earlyStopping strategy scheduler",
			example:   "asha", field: func(s *subject) any { return (*string)(&s.search.Method) },
		},
		integer("search", "trials", strconv.Itoa(tuning.DefaultTrials), 1, "64", "How many trials begin at most.",
			"maxTrialCount n_trials max_trials run_cap num_samples", func(s *subject) any { return &s.search.Trials }),
		integer("search", "parallel", strconv.Itoa(tuning.DefaultParallel), 1, "8", "How many trials run at one time at most.",
			"parallelTrialCount n_jobs max_concurrent_trials max_concurrent n_workers", func(s *subject) any { return &s.search.Parallel }),
		{
			Block: "search", Name: "epochs", Type: TypeInteger, Low: 1, High: most, Allowed: "a whole number of at least 1 and at most the total of progress",
			Meaning:   "The epochs of a whole trial. By default those that the job runs: the total of progress, or the group total of its pattern.",
			Elsewhere: "max_resource max_length max_time max_iter max_t max_epochs max_budget",
			example:   bare("81"), field: func(s *subject) any { return &s.search.Epochs },
		},
		{
			Block: "search", Name: "min_epochs", Type: TypeInteger, Low: 1, High: most, Allowed: "a whole number of at least 1 and below epochs",
			Meaning:   "The epochs before a trial may be ended early; by default a thirtieth of a whole trial, and 2 at least.",
			Elsewhere: "min_resource min_iter grace_period min_t min_budget max_rungs",
			example:   bare("3"), field: func(s *subject) any { return &s.search.MinEpochs },
		},
		integer("search", "eta", strconv.Itoa(tuning.DefaultEta), 2, "3", "At each rung, one of eta trials goes on, and each rung is eta times as long as the one before.",
			"reduction_factor divisor", func(s *subject) any { return &s.search.Eta }),
		{
			Block: "search", Name: "seed", Type: TypeInteger, Default: "0", High: exact, Allowed: "a whole number of at least 0",
			Meaning: "Searches with the same seed draw the same hyperparameters.", Elsewhere: "random_state random_seed experiment_seed",
			example: bare("7"), field: func(s *subject) any { return &s.search.Seed },
		},
		{
			Block: "search", Name: "system", Type: TypeWord, Default: string(tuning.DefaultSystem), Words: words(tuning.SystemModes()),
			Meaning: "How system knobs and knobs with quality=same are treated: tuned inside the epochs of the trials and, by what earlier trials showed, from the start of the next; searched like hyperparameters (memory is not), or left as they are.",
			example: string(tuning.Pipelined), field: func(s *subject) any { return (*string)(&s.search.System) },
		},
		integer("search", "failures", "", 1, "5", "The search ends when more trials than this failed; by default a quarter of all, and at least 3.",
			"maxFailedTrialCount max_restarts max_failures", func(s *subject) any { return &s.search.Failures }),
		{
			Block: "search", Name: "energy", Type: TypeEnergy, Allowed: "an amount of energy above 0 with its unit, such as 2MJ or 0.5kWh",
			Meaning: "The joules of all trials after which the search ends; without it there is no bound.",
			example: "20MJ", field: func(s *subject) any { return &s.search.Energy },
		},
		{
			Block: "search", Name: "time", Type: TypeDuration, Allowed: "a time above 0 with its unit, such as 90m or 4h",
			Meaning: "The time from its beginning after which the search ends; without it there is no bound.", Elsewhere: "timeout time_budget_s",
			example: "12h", field: func(s *subject) any { return &s.search.Time },
		},
		{
			Block: "search", Name: "core_hours", Type: TypeNumber, Low: math.SmallestNonzeroFloat64, High: math.MaxFloat64, Allowed: "a number above 0",
			Meaning: "The core-hours of all trials after which the search ends; without it there is no bound.",
			example: bare("200"), field: func(s *subject) any { return &s.search.CoreHours },
		},
		integer("action", "max", "1", 1, "2",
			"How often one run can take the action. The settings file holds the total number of times to take it.", "", func(s *subject) any { return &s.action.Max }),
		integer("action", "explore", "0", 0, "2",
			"How many runs of this kind may take the action, in their first half, before its effect is known. 0: none.", "",
			func(s *subject) any { return &s.action.Explore }),
	}
}

// hasNames reports whether blocks of a type have names, so that there may be several.
func hasNames(block string) bool { return block == "knob" || block == "action" }

// integer is a key of a count.
func integer(block, name, preset string, low float64, example, meaning, elsewhere string, field func(s *subject) any) Key {
	return Key{
		Block: block, Name: name, Type: TypeInteger, Default: preset, Low: low, High: most, Allowed: fmt.Sprintf("a whole number of at least %g", low),
		Meaning: meaning, Elsewhere: elsewhere, example: bare(example), field: field,
	}
}

func words[T ~string](list []T) []string {
	return tuning.Each(list, func(w T) string { return string(w) })
}

func keysOf(block string) []Key {
	return slices.DeleteFunc(Keys(), func(k Key) bool { return k.Block != block })
}

func namesOf(keys []Key) []string {
	return tuning.Each(keys, func(k Key) string { return k.Name })
}

func (k Key) allowed() string {
	if k.Allowed == "" {
		return oneOf(k.Words)
	}
	return k.Allowed
}
