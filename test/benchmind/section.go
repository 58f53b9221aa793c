package benchmind

import (
	"cmp"
	"path/filepath"
)

// section is one evaluation: what it is asked, and what of its answer is shown.
type section struct {
	name  string // of its files
	title string
	// asks are the words after `pitchpipe evaluate`; a path is relative to the data.
	asks  []string
	files []files
	rows  string // key of the summary whose list is shown; empty: the rows
	aims  func(object) []aim
	chart chart // of no rows: nothing is drawn
}

// files are those of one flag.
type files struct {
	flag  string
	paths []string
}

// sections are all evaluations, in the order of the report. Own is a folder that
// scripts/regret recorded into; empty: none.
func sections(own string) []section {
	zeus := files{"trials", []string{"zeus/trials.csv"}}
	out := []section{
		{
			name: "tuner-blend", title: "Tuner: returning GPU jobs, half energy and half time, as often as the published tuner", asks: []string{"tuner", "--objective", "blend", "--weight", "0.5"},
			files: []files{zeus}, chart: savings("half energy, half time"), aims: aimsOfReference,
		},
		{
			name: "tuner-energy", title: "Tuner: returning GPU jobs, least energy at 1.10 of the time", asks: []string{"tuner", "--objective", "energy", "--max-slowdown", "1.10"},
			files: []files{zeus}, chart: savings("energy at 1.10 of the time"), aims: aimsOfConstrained,
		},
		{
			name: "tuner-ten", title: "Tuner: after ten returns only", asks: []string{"tuner", "--objective", "blend", "--weight", "0.5", "--recurrences", "10"},
			files: []files{zeus}, aims: aimsOfTen,
		},
		{
			name: "tuner-cores", title: "Tuner: fewest core-seconds at 1.05 of the time and 1.02 of the joules, six probes", asks: []string{"tuner", "--objective", "cores", "--max-slowdown", "1.05", "--max-joules", "1.02", "--probes", "6"},
			files: []files{{"trials", []string{"multicores/trials.csv"}}}, chart: savings("core-seconds"), aims: aimsOfCores,
		},
		{
			name: "tuner-attain", title: "Tuner: fewest cores at 0.98 of full speed, eight probes", asks: []string{"tuner", "--objective", "cores", "--attain", "0.98", "--probes", "8"},
			files: []files{{"trials", []string{"synergy/trials.csv"}}}, aims: aimsOfAttain,
		},
		{
			name: "classifier", title: "Classifier: programs recognised and strangers refused", asks: []string{"classifier"},
			files: []files{{"samples", []string{"armpm/samples.csv.gz"}}}, chart: recognised(), aims: aimsOfClasses,
		},
	}
	if own != "" {
		out = append(out, section{
			name: "regret", title: "Deciding by classes: what an input that was never seen pays, on own recordings", asks: []string{"regret"},
			files: []files{
				{"trials", []string{filepath.Join(own, "trials.csv")}},
				{"samples", []string{filepath.Join(own, "samples.csv")}},
				{"curves", []string{filepath.Join(own, "curves.csv")}},
			}, aims: aimsOfRegret,
		})
	}
	return append(out,
		section{
			name: "forecast", title: "Forecast: the end of a curve from its beginning", asks: []string{"forecast", "--seen", "0.2,0.3,0.5"},
			files: []files{{"curves", []string{"lcbench/curves.csv.gz", "adaptdl/curves.csv", "rl-net2net/adaptations.csv"}}}, chart: forecasts(), aims: aimsOfForecast,
		},
		section{
			name: "speed-synergy", title: "Speed under unmeasured settings: cores and memory", asks: []string{"speed", "--outcome", "samples_per_second", "--samples", "8"},
			files: []files{{"trials", []string{"synergy/trials.csv"}}}, aims: aimsOfSpeed(0.10),
		},
		section{
			name: "speed-adaptdl", title: "Speed under unmeasured settings: GPUs, placement and batch size", asks: []string{"speed", "--outcome", "samples_per_second", "--samples", "8"},
			files: []files{{"trials", []string{"adaptdl/trials.csv"}}}, aims: aimsOfSpeed(0.15),
		},
		section{
			name: "search", title: "Search: how near to the best with few measurements", asks: []string{"search", "--budget", "8,10,12,16"},
			files: []files{{"trials", []string{"zeus/trials.csv", "adaptdl/trials_to_target.csv"}}, {"curves", []string{"lcbench/curves.csv.gz"}}},
			rows:  "means", chart: regrets(), aims: aimsOfSearch,
		},
		section{
			name: "hyper", title: "Hyperparameters: regret at equal seconds", asks: []string{"hyper"},
			files: []files{{"curves", []string{"lcbench/curves.csv.gz"}}}, rows: "means", aims: aimsOfHyper,
		},
		section{
			name: "plan-time", title: "Plan: whole jobs, least time", asks: []string{"plan", "--objective", "time", "--epochs", "5,20,100"},
			files: []files{{"trials", []string{"zeus/trials.csv", "multicores/trials.csv", "synergy/trials.csv", "adaptdl/trials_to_target.csv"}}}, aims: aimsOfPlan,
		},
		section{
			name: "plan-energy", title: "Plan: whole jobs, least energy at 1.10 of the time", asks: []string{"plan", "--objective", "energy", "--max-slowdown", "1.1", "--epochs", "5,20,100"},
			files: []files{{"trials", []string{"zeus/trials.csv", "multicores/trials.csv"}}}, aims: aimsOfPlan,
		},
		section{
			name: "plan-energy-quiet", title: "The same where what the controller sees varies no more than what was recorded",
			asks:  []string{"plan", "--objective", "energy", "--max-slowdown", "1.1", "--epochs", "5,20,100", "--noise", "0"},
			files: []files{{"trials", []string{"zeus/trials.csv", "multicores/trials.csv"}}}, aims: aimsOfPlan,
		},
		section{
			name: "verify", title: "Verdicts: false ones, and the power to find an effect", asks: []string{"verify"},
			files: []files{
				{"trials", []string{"zeus/trials.csv", "armpm/trials.csv"}},
				{"samples", []string{"armpm/samples.csv.gz"}},
				{"curves", []string{"rl-net2net/adaptations.csv"}},
			}, chart: powers(), aims: aimsOfVerdicts,
		},
	)
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
