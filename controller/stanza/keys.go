package stanza

import (
	"fmt"
	"math"
	"slices"

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
)

// Key describes one key of the stanza.
type Key struct {
	Block     string // the block that it stands in; empty = the top level
	Name      string
	Type      Type
	Default   string               // as written; empty = none
	Words     []string             // of TypeWord, and those that stand for a number of TypeNumber
	Low, High float64              // of TypeNumber and TypeInteger
	Allowed   string               // what is allowed, as errors and the reference say it
	Meaning   string               // one sentence
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
	return []string{"", "knob", "progress", "quality", "profile", "checkpoint", "budget"}
}

// none lifts a bound.
const none = "none"

// most is the largest count that is taken for a real one.
const most = 1e9

// Keys lists every key that a stanza may have, block by block.
func Keys() []Key {
	return []Key{
		{
			Name: "mode", Type: TypeWord, Default: string(tuning.DefaultMode), Words: words(tuning.Modes()),
			Meaning: "How far the tuner may go: only watch, also say what would be better, or also do it.",
			example: "apply", field: func(s *subject) any { return (*string)(&s.Mode) },
		},
		{
			Name: "objective", Type: TypeWord, Default: string(tuning.DefaultObjective), Words: words(tuning.Objectives()),
			Meaning: "What is made small: joules per epoch, seconds per epoch, their product, a blend of both, or what the site charges.",
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
			Allowed: "the name of an environment variable that no shell, linker, language runtime or scheduler acts on, such as PATH, LD_* or SLURM_*",
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
			Meaning: "The value reaches the running job through the file that PITCHPIPE_SETTINGS names.",
			example: bare("true"), field: func(s *subject) any { return &s.knob.Live },
		},
		{
			Block: "knob", Name: "follows", Type: TypeKnob, Allowed: "the name of another knob that follows none, without quality, values, min, max, scale and default",
			Meaning: "The knob always equals this other knob.",
			example: "cores", field: func(s *subject) any { return &s.knob.Follows },
		},
		{
			Block: "knob", Name: "values", Type: TypeValues, Allowed: "a list of different values, without min and max",
			Meaning: "The values that may be tried.",
			example: []any{bare("32"), bare("64"), bare("128")}, field: func(s *subject) any { return &s.knob.Values },
		},
		{
			Block: "knob", Name: "min", Type: TypeValue, Allowed: "a number below max, without values",
			Meaning: "The least value that may be tried.",
			example: bare("0.001"), field: func(s *subject) any { return &s.knob.Min },
		},
		{
			Block: "knob", Name: "max", Type: TypeValue, Allowed: "a number above min, without values",
			Meaning: "The greatest value that may be tried.",
			example: bare("0.1"), field: func(s *subject) any { return &s.knob.Max },
		},
		{
			Block: "knob", Name: "scale", Type: TypeWord, Default: string(tuning.Linear), Words: words(tuning.Scales()),
			Allowed: "linear, log or pow2, only with min and max; log and pow2 need min above 0",
			Meaning: "How the values between min and max are spaced.",
			example: "log", field: func(s *subject) any { return (*string)(&s.knob.Scale) },
		},
		{
			Block: "knob", Name: "default", Type: TypeValue, Allowed: "one value, not for cores and memory",
			Meaning: "The untuned value; a hyperparameter needs it unless the job file shows the value in env or args.",
			example: bare("32"), field: func(s *subject) any { return &s.knob.Default },
		},
		{
			Block: "knob", Name: "quality", Type: TypeWord, Words: []string{tuning.QualitySame},
			Meaning: "The knob changes what an epoch costs and not what the job learns, so it may be tried and moved within a run. " +
				"Any other knob that is no system knob changes only before a run starts.",
			example: tuning.QualitySame, field: func(s *subject) any { return &s.knob.Quality },
		},
		{
			Block: "progress", Name: "pattern", Type: TypePattern,
			Allowed: "a regular expression with the named group epoch, and if wanted total, loss and quality",
			Meaning: "A line of the job that matches says that this epoch ended.",
			example: `epoch (?P<epoch>\d+)/(?P<total>\d+)`, field: func(s *subject) any { return &s.Progress.Pattern },
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
		{
			Block: "progress", Name: "total", Type: TypeInteger, Low: 1, High: most, Allowed: "a whole number of at least 1",
			Meaning: "The epochs in all, where no line says it.",
			example: bare("50"), field: func(s *subject) any { return &s.Progress.Total },
		},
		{
			Block: "quality", Name: "direction", Type: TypeWord, Words: []string{"max", "min"},
			Meaning: "Whether more or less of the quality is better; needed.",
			example: "max", field: func(s *subject) any { return &s.guard.Direction },
		},
		{
			Block: "quality", Name: "max_loss", Type: TypeNumber, Default: "0.01", High: 1, Allowed: "a number from 0 to 1",
			Meaning: "How much worse a tuned job may end, as a share of the untuned quality.",
			example: bare("0.01"), field: func(s *subject) any { return &s.guard.MaxLoss },
		},
		{
			Block: "quality", Name: "target", Type: TypeNumber, Low: -math.MaxFloat64, High: math.MaxFloat64, Allowed: "a number",
			Meaning: "The quality at which the job is done: whole runs are compared by what they cost until they first reach it, instead of until their last epoch.",
			example: bare("0.97"), field: func(s *subject) any { return &s.guard.Target },
		},
		{
			Block: "profile", Name: "warmup_epochs", Type: TypeInteger, Default: "1", High: most, Allowed: "a whole number of at least 0",
			Meaning: "The first epochs, which are not judged.",
			example: bare("1"), field: func(s *subject) any { return &s.Profile.WarmupEpochs },
		},
		{
			Block: "profile", Name: "epochs", Type: TypeInteger, Default: "2", Low: 1, High: most, Allowed: "a whole number of at least 1",
			Meaning: "The epochs after them that make the profile.",
			example: bare("2"), field: func(s *subject) any { return &s.Profile.Epochs },
		},
		{
			Block: "checkpoint", Name: "signal", Type: TypeSignal, Default: tuning.DefaultSignal,
			Allowed: "the name of a signal that a job can catch, such as SIGUSR1 or USR1",
			Meaning: "The signal that asks the job to save.",
			example: "SIGUSR1", field: func(s *subject) any { return &s.save.Signal },
		},
		{
			Block: "checkpoint", Name: "grace", Type: TypeDuration, Default: "60s", Allowed: "a time of more than 0s and at most 1h",
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
			Block: "budget", Name: "energy", Type: TypeEnergy, Allowed: "an amount of energy above 0 such as 2MJ or 0.5kWh",
			Meaning: "The joules of all attempts after which tuning ends; without it there is no bound.",
			example: "2MJ", field: func(s *subject) any { return &s.Budget.Energy },
		},
		{
			Block: "budget", Name: "time", Type: TypeDuration, Allowed: "a time above 0 such as 90m or 4h",
			Meaning: "The time of all attempts after which tuning ends; without it there is no bound.",
			example: "4h", field: func(s *subject) any { return &s.Budget.Time },
		},
		{
			Block: "budget", Name: "restarts", Type: TypeInteger, Default: "2", High: most, Allowed: "a whole number of at least 0",
			Meaning: "How often the job may be moved or rolled back.",
			example: bare("2"), field: func(s *subject) any { return &s.Budget.Restarts },
		},
		{
			Block: "budget", Name: "probes", Type: TypeInteger, Default: "4", High: most, Allowed: "a whole number of at least 0",
			Meaning: "How many settings may be tried on the early epochs.",
			example: bare("4"), field: func(s *subject) any { return &s.Budget.Probes },
		},
		{
			Block: "budget", Name: "returns", Type: TypeInteger, Default: "0", High: most, Allowed: "a whole number of at least 0",
			Meaning: "How many runs of this kind of job may run as a whole under a setting that is not known to be better yet, so that those after them profit. " +
				"It is how a job that cannot be moved is tuned. 0: only what is known is used.",
			example: bare("6"), field: func(s *subject) any { return &s.Budget.Returns },
		},
	}
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

func keysOf(block string) []Key {
	return slices.DeleteFunc(Keys(), func(k Key) bool { return k.Block != block })
}

func namesOf(keys []Key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.Name
	}
	return out
}

func (k Key) allowed() string {
	if k.Allowed == "" {
		return oneOf(k.Words)
	}
	return k.Allowed
}
