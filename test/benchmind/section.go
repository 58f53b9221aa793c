package benchmind

import (
	"cmp"
	"path/filepath"
)

// section is one evaluation: what it is asked, and what of its answer is shown.
type section struct {
	name  string // of its files
	title string
	// asks are the words behind `pitchpipe evaluate`; a path is relative to the data.
	asks    []string
	files   []files
	rows    string // key of the summary whose list is shown; empty: the rows
	columns []column
	aims    func(object) []aim
	plots   func(object) []figure
}

// files are those of one flag.
type files struct {
	flag  string
	paths []string
}

// column is one key of the rows.
type column struct {
	key, head string
	digits    int // of numbers
}

// sections are all evaluations, in the order of the report. Own is a folder that
// scripts/regret recorded into; empty: there is none.
func sections(own string) []section {
	zeus := files{"trials", []string{"zeus/trials.csv"}}
	out := []section{
		{
			name: "tuner-blend", title: "Tuner: returning GPU jobs, half energy and half time, as often as the published tuner", asks: []string{"tuner", "--objective", "blend", "--weight", "0.5"},
			files: []files{zeus}, columns: tunerColumns(), plots: savings("tuner-blend", "half energy, half time"), aims: aimsOfReference,
		},
		{
			name: "tuner-energy", title: "Tuner: returning GPU jobs, least energy at 1.10 of the time", asks: []string{"tuner", "--objective", "energy", "--max-slowdown", "1.10"},
			files: []files{zeus}, columns: tunerColumns(), plots: savings("tuner-energy", "energy at 1.10 of the time"), aims: aimsOfConstrained,
		},
		{
			name: "tuner-ten", title: "Tuner: after ten returns only", asks: []string{"tuner", "--objective", "blend", "--weight", "0.5", "--recurrences", "10"},
			files: []files{zeus}, columns: tunerColumns(), aims: aimsOfTen,
		},
		{
			name: "tuner-cores", title: "Tuner: fewest core-seconds at 1.05 of the time and 1.02 of the joules, six probes", asks: []string{"tuner", "--objective", "cores", "--max-slowdown", "1.05", "--max-joules", "1.02", "--probes", "6"},
			files: []files{{"trials", []string{"multicores/trials.csv"}}}, columns: tunerColumns(), plots: savings("tuner-cores", "core-seconds"), aims: aimsOfCores,
		},
		{
			name: "tuner-attain", title: "Tuner: fewest cores at 0.98 of full speed, eight probes", asks: []string{"tuner", "--objective", "cores", "--attain", "0.98", "--probes", "8"},
			files: []files{{"trials", []string{"synergy/trials.csv"}}}, columns: tunerColumns(), aims: aimsOfAttain,
		},
		{
			name: "classifier", title: "Classifier: programs recognised and strangers refused", asks: []string{"classifier"},
			files: []files{{"samples", []string{"armpm/samples.csv.gz"}}}, columns: []column{
				{"workload", "program", 0},
				{"questions", "asked", 0},
				{"recognised", "recognised", 3},
				{"precision", "precision", 3},
				{"unknown_auc", "unknown area", 3},
				{"unknown_called_known", "unknown called known", 3},
			}, plots: recognised, aims: aimsOfClasses,
		},
	}
	if own != "" {
		out = append(out, section{
			name: "regret", title: "Deciding by classes: what an input that was never seen pays, on own recordings", asks: []string{"regret"},
			files: []files{
				{"trials", []string{filepath.Join(own, "trials.csv")}},
				{"samples", []string{filepath.Join(own, "samples.csv")}},
				{"curves", []string{filepath.Join(own, "curves.csv")}},
			}, columns: []column{
				{"workload", "workload", 0},
				{"input", "input", 0},
				{"known", "known", 2},
				{"optimum", "optimum", 0},
				{"regret", "regret", 3},
				{"regret_hindsight", "in hindsight", 3},
				{"single_regret", "best single", 3},
				{"default_regret", "default", 3},
			}, aims: aimsOfRegret,
		})
	}
	return append(out,
		section{
			name: "forecast", title: "Forecast: the end of a curve from its beginning", asks: []string{"forecast", "--seen", "0.2,0.3,0.5"},
			files: []files{{"curves", []string{"lcbench/curves.csv.gz", "adaptdl/curves.csv", "rl-net2net/adaptations.csv"}}}, columns: []column{
				{"workload", "workload", 0},
				{"measure", "measure", 0},
				{"seen", "seen", 2},
				{"runs", "runs", 0},
				{"final_error_median", "error", 4},
				{"last_value_error_median", "last value", 4},
				{"best_single_error_median", "best single", 4},
				{"target_error_median", "target epoch", 3},
				{"interval80_coverage", "covered", 3},
				{"unknown_share", "unknown", 3},
			}, plots: forecasts, aims: aimsOfForecast,
		},
		section{
			name: "speed-synergy", title: "Speed under unmeasured settings: cores and memory", asks: []string{"speed", "--outcome", "samples_per_second", "--samples", "8"},
			files: []files{{"trials", []string{"synergy/trials.csv"}}}, columns: speedColumns(), aims: aimsOfSpeed(0.10),
		},
		section{
			name: "speed-adaptdl", title: "Speed under unmeasured settings: GPUs, placement and batch size", asks: []string{"speed", "--outcome", "samples_per_second", "--samples", "8"},
			files: []files{{"trials", []string{"adaptdl/trials.csv"}}}, columns: speedColumns(), aims: aimsOfSpeed(0.15),
		},
		section{
			name: "search", title: "Search: how near to the best with few measurements", asks: []string{"search", "--budget", "8,10,12,16"},
			files: []files{{"trials", []string{"zeus/trials.csv", "adaptdl/trials_to_target.csv"}}, {"curves", []string{"lcbench/curves.csv.gz"}}},
			rows:  "means", columns: []column{
				{"data", "data", 0},
				{"outcome", "outcome", 0},
				{"method", "method", 0},
				{"budget", "budget", 0},
				{"problems", "problems", 0},
				{"log_ratio_mean", "log ratio", 4},
				{"found_over_optimum_mean", "found over best", 3},
				{"over_random", "over random", 2},
			}, plots: regrets, aims: aimsOfSearch,
		},
		section{
			name: "hyper", title: "Hyperparameters: regret at equal seconds", asks: []string{"hyper"},
			files: []files{{"curves", []string{"lcbench/curves.csv.gz"}}}, rows: "means", columns: []column{
				{"data", "data", 0}, {"method", "method", 0}, {"problems", "problems", 0}, {"regret_mean", "regret", 4}, {"over_random", "over random", 2},
			}, aims: aimsOfHyper,
		},
		section{
			name: "plan-time", title: "Plan: whole jobs, least time", asks: []string{"plan", "--objective", "time", "--epochs", "5,20,100"},
			files:   []files{{"trials", []string{"zeus/trials.csv", "multicores/trials.csv", "synergy/trials.csv", "adaptdl/trials_to_target.csv"}}},
			columns: planColumns(), aims: aimsOfPlan,
		},
		section{
			name: "plan-energy", title: "Plan: whole jobs, least energy at 1.10 of the time", asks: []string{"plan", "--objective", "energy", "--max-slowdown", "1.1", "--epochs", "5,20,100"},
			files:   []files{{"trials", []string{"zeus/trials.csv", "multicores/trials.csv"}}},
			columns: planColumns(), aims: aimsOfPlan,
		},
		section{
			name: "plan-energy-quiet", title: "The same where what the controller sees varies no more than what was recorded",
			asks:    []string{"plan", "--objective", "energy", "--max-slowdown", "1.1", "--epochs", "5,20,100", "--noise", "0"},
			files:   []files{{"trials", []string{"zeus/trials.csv", "multicores/trials.csv"}}},
			columns: planColumns(), aims: aimsOfPlan,
		},
		section{
			name: "verify", title: "Verdicts: false ones, and the power to find an effect", asks: []string{"verify"},
			files: []files{
				{"trials", []string{"zeus/trials.csv", "armpm/trials.csv"}},
				{"samples", []string{"armpm/samples.csv.gz"}},
				{"curves", []string{"rl-net2net/adaptations.csv"}},
			}, columns: []column{
				{"comparison", "compared", 0},
				{"null", "without effect", 0},
				{"data", "data", 0},
				{"objective", "measure", 0},
				{"effect", "effect", 2},
				{"false_verdicts", "false", 3},
				{"coverage", "covered", 3},
				{"power", "power", 3},
				{"to_verdict_median", "looks", 0},
				{"limit", "limit", 0},
			}, plots: powers, aims: aimsOfVerdicts,
		},
	)
}

func tunerColumns() []column {
	return []column{
		{"workload", "workload", 0},
		{"machine", "machine", 0},
		{"part", "part", 0},
		{"recurrences", "runs", 0},
		{"oracle_ratio", "oracle", 3},
		{"final_ratio", "final", 3},
		{"cumulative_ratio", "all runs", 3},
		{"cumulative_energy_ratio", "joules", 3},
		{"reference_cumulative_energy_ratio", "reference", 3},
		{"whole_final_ratio", "whole: final", 3},
		{"whole_cumulative_ratio", "all runs", 3},
		{"whole_cumulative_energy_ratio", "joules", 3},
		{"single_knob_cumulative_ratio", "one knob", 3},
		{"grid_cumulative_ratio", "grid", 3},
		{"random_cumulative_ratio", "random", 3},
		{"limits_broken", "limits broken", 2},
	}
}

func planColumns() []column {
	return []column{
		{"workload", "workload", 0},
		{"machine", "machine", 0},
		{"part", "part", 0},
		{"epochs", "epochs", 0},
		{"epoch_seconds", "epoch, s", 0},
		{"settings", "settings", 0},
		{"moved", "moved", 2},
		{"paid", "paid", 2},
		{"paid_ratio", "cost", 3},
		{"hurt", "hurt", 2},
		{"hurt_ratio", "cost", 3},
		{"ratio", "all", 3},
		{"worst_ratio", "worst", 3},
		{"always_ratio", "always", 3},
		{"oracle_ratio", "oracle", 3},
	}
}

func speedColumns() []column {
	return []column{
		{"workload", "workload", 0},
		{"machine", "machine", 0},
		{"settings", "settings", 0},
		{"samples", "samples", 0},
		{"error_mean", "mean error", 3},
		{"error_max", "largest error", 3},
		{"attained", "attained", 3},
	}
}

// shown are the rows that the report has a table of.
func (s section) shown(o object) []fields {
	if s.rows == "" {
		return o.Rows
	}
	return o.Summary.list(s.rows)
}

// command are the arguments of pitchpipe.
func (s section) command(data string) []string {
	out := append([]string{"evaluate"}, s.asks...)
	for _, f := range s.files {
		for _, p := range f.paths {
			out = append(out, "--"+f.flag, s.path(data, p))
		}
	}
	return append(out, "--json")
}

func (s section) path(data, p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(data, filepath.FromSlash(p))
}

// family is the last folder of a file's name, such as zeus.
func family(file string) string {
	return cmp.Or(filepath.Base(filepath.Dir(file)), file)
}
