package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/report"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
)

// searchBrief is a search in four lines: its state, the best trial, the next step, and what was used.
func searchBrief(x trials.State, now time.Time) string {
	s := x.Searcher()
	best := "none yet: no trial has ended an epoch"
	if r := s.Ranking(); len(r) > 0 {
		best = foundText(x, s, r[0])
	}
	return fmt.Sprintf("search  %s (%s) %s\nbest    %s\nnext    %s\nspent   %s\n", x.ID, report.Legible(x.Name), searchState(x, s), best, searchNext(x, s, now), spentText(x, s, now))
}

// searchState returns the progress of a search as text.
func searchState(x trials.State, s *searcher.Searcher) string {
	begun := len(x.Trials)
	switch {
	case !x.Over && x.Closing == "":
		return fmt.Sprintf("runs: %s of %d trials", counts(s), x.Plan.Trials)
	case !x.Settled():
		return fmt.Sprintf("ends: %s; %s to end", cmp.Or(x.Closing, "nothing is left to begin"), report.Count(s.Busy(), "job"))
	case x.Closing != "":
		return fmt.Sprintf("is over: %s; %s of %d trials", x.Closing, counts(s), x.Plan.Trials)
	case begun < x.Policy.Search.Trials:
		return fmt.Sprintf("is over: its knobs have no more than %s", report.Count(begun, "combination"))
	}
	return fmt.Sprintf("is over: all %s ended", report.Count(begun, "trial"))
}

// counts are the trials by their state.
func counts(s *searcher.Searcher) string {
	return s.Counts(searcher.Done, searcher.Stopped, searcher.Failed, searcher.Diverged, searcher.Paused, searcher.Running)
}

func foundText(x trials.State, s *searcher.Searcher, t *searcher.Trial) string {
	best := s.Best(t)
	what := "quality"
	if x.Policy.Quality == nil {
		what = "loss"
	}
	text := fmt.Sprintf("%s %.4g in trial %d after %s: %s", what, best.Value, t.Number, report.Count(best.Epoch, "epoch"), t.Settings)
	if s.Target != nil && len(t.Reports) > 0 && t.State == searcher.Done && best.Epoch < s.Epochs {
		text += fmt.Sprintf(" (target %g)", *s.Target)
	}
	return text
}

// searchNext returns the commands that its owner can run next.
func searchNext(x trials.State, s *searcher.Searcher, now time.Time) string {
	last := func(t trials.Trial) bool { return t.State == searcher.Failed && len(t.Jobs) > 0 }
	left, known := x.Left(now)
	switch failed := slices.IndexFunc(x.Trials, last); {
	case len(s.Ranking()) == 0 && failed >= 0:
		t := x.Trials[failed]
		job := t.Jobs[len(t.Jobs)-1]
		if strings.HasPrefix(t.Reason, searcher.Unseen) || strings.HasPrefix(t.Reason, searcher.Unvalued) { // its output alone does not show that
			return fmt.Sprintf("trial %d failed, since %s; pitchpipe logs %s shows its lines", t.Number, t.Reason, job)
		}
		return fmt.Sprintf("pitchpipe logs %s shows why trial %d failed", job, t.Number)
	case x.Settled() && len(s.Ranking()) == 0:
		return "pitchpipe search status " + x.ID + " shows how the trials ended"
	case x.Settled() && x.Closing != "" && resumable(x, x.Plan.Trials) && s.Bound(now.Sub(x.Created).Seconds()) == "":
		return fmt.Sprintf("pitchpipe search resume %s goes on; pitchpipe search best %s -o FILE writes a job file with the best values", x.ID, x.ID)
	case x.Settled():
		return "pitchpipe search best " + x.ID + " -o FILE writes a job file with the best values"
	case x.Over || x.Closing != "":
		return "wait until its jobs have ended"
	case !known:
		return "wait: the end is unknown before some epochs have ended"
	default:
		return fmt.Sprintf("wait: it ends about %s, in %s", clock(now.Add(left), now), report.Duration(max(left.Round(time.Second), time.Second).Seconds()))
	}
}

// clock is a time of today, or with its day.
func clock(at, now time.Time) string {
	if at, now = at.Local(), now.Local(); at.YearDay() != now.YearDay() || at.Year() != now.Year() {
		return at.Format("Mon 2 Jan 15:04")
	}
	return at.Format("15:04")
}

// spentText is what all trials used, and the budget where there is one.
func spentText(x trials.State, s *searcher.Searcher, now time.Time) string {
	joules, hours, _ := s.Spent()
	now = cmp.Or(x.Ended, now)
	of := func(have, budget string, bound bool) string {
		if bound {
			return have + " of " + budget
		}
		return have
	}
	parts := []string{of(report.Duration(now.Sub(x.Created).Seconds()), report.Duration(x.Plan.Time.Seconds()), x.Plan.Time > 0)}
	var sources []string
	least := "" // of what some epochs used nothing is known
	for _, t := range x.Trials {
		r := t.Used()
		if r.Source != "" && !slices.Contains(sources, r.Source) {
			sources = append(sources, r.Source)
		}
		if r.Seconds > 0 && r.Joules == nil {
			least = "at least "
		}
	}
	if len(sources) > 0 {
		have := fmt.Sprintf("%s%s (%s)", least, report.Joules(joules), strings.Join(sources, ", "))
		have = of(have, report.Joules(float64(x.Plan.Energy)), x.Plan.Energy > 0)
		if x.Plan.Energy > 0 && !x.Plan.EnforceModel && slices.ContainsFunc(sources, tuning.IsModelled) {
			have += " (not enforced by modelled joules)"
		}
		parts = append(parts, have)
	} else {
		parts = append(parts, "joules not measured")
	}
	parts = append(parts, of(fmt.Sprintf("%.3g", hours), fmt.Sprintf("%g", x.Plan.CoreHours), x.Plan.CoreHours > 0)+" core-hours")
	return strings.Join(parts, ", ")
}

func searchList(all []trials.State, now time.Time) string {
	return report.List(strings.Fields("SEARCH NAME USER STATE TRIALS BEST TIME ENDS WHY"), all, func(x trials.State) []string {
		state, best, ends, until := "running", "-", "-", now
		if !x.Ended.IsZero() {
			state, until, ends = "over", x.Ended, clock(x.Ended, now)
		} else if left, ok := x.Left(now); ok {
			ends = "about " + clock(now.Add(left), now)
		}
		s := x.Searcher()
		if r := s.Ranking(); len(r) > 0 {
			best = value(s.Best(r[0]))
		}
		return []string{
			x.ID, report.Legible(x.Name), x.Owner, state, fmt.Sprintf("%d/%d", len(x.Trials), x.Plan.Trials), best,
			report.Duration(until.Sub(x.Created).Seconds()), ends, x.Closing,
		}
	})
}

func searchTrials(x trials.State) string {
	return report.List(strings.Fields("TRIAL STATE EPOCH VALUE TIME ENERGY CORES JOB HYPERPARAMETERS WHY"), x.Trials, func(t trials.Trial) []string {
		r := t.Used()
		return []string{
			fmt.Sprint(t.Number), trialState(t), epochs(r.Epoch, x.Plan.Epochs), value(r), known(report.Duration(r.Seconds), r.Seconds > 0), joules(r.Joules, r.Source), known(fmt.Sprint(r.Cores), r.Cores > 0), cmp.Or(string(tuning.Last(t.Jobs)), "-"),
			t.Settings.String(), report.Legible(cmp.Or(t.Reason, t.Trouble)),
		}
	})
}

func trialState(t trials.Trial) string {
	switch {
	case t.State == searcher.Running && len(t.Jobs) < t.Attempt:
		return "to start"
	case t.State != searcher.Running && t.Busy:
		return string(t.State) + ", ending"
	}
	return string(t.State)
}

func searchResults(all []ranked, whole int) string {
	return report.List(strings.Fields("RANK TRIAL BEST AT EPOCH STATE TIME ENERGY CORE-HOURS HYPERPARAMETERS"), all, func(t ranked) []string {
		r := t.Used()
		return []string{
			fmt.Sprint(t.Rank), fmt.Sprint(t.Number), value(t.Best), fmt.Sprint(t.Best.Epoch), epochs(r.Epoch, whole), string(t.State), report.Duration(r.Seconds), joules(r.Joules, r.Source),
			fmt.Sprintf("%.3g", r.CoreHours), t.Settings.String(),
		}
	})
}

// known is a text, and "-" where what it says is unknown.
func known(text string, is bool) string {
	if is {
		return text
	}
	return report.Unknown
}

func value(r searcher.Report) string { return known(fmt.Sprintf("%.4g", r.Value), r.Epoch > 0) }

// measures are what a search compares its trials by; nil: by their values alone.
func measures(x trials.State) []string {
	if q := x.Policy.Quality; q != nil && len(q.Measures) > 1 {
		return q.Measures
	}
	return nil
}

// searchWarnings are what a user ought to know before a search begins, if the machine takes fewer trials at a
// time than asked for.
func searchWarnings(v api.Verdict, asked, parallel int) []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, "warning: "+fmt.Sprintf(format, args...)) }
	for _, w := range v.Warnings {
		warn("%s", w)
	}
	for _, k := range v.Policy.Searched() {
		if len(k.Values) == 1 {
			warn("the knob %s has one value, so nothing is searched there", k.Name)
		}
	}
	if v.Policy.Checkpoint == nil {
		warn("the job file has no checkpoint block, so a trial that was stopped, lost its node or met its time limit cannot go on")
	}
	if parallel < asked {
		warn("the cores of this machine take %d of the %d parallel trials at one time; the others wait", parallel, asked)
	}
	acts := func(p tuning.Prospects) bool { // under one of the schedulers that may be meant
		return len(p.Knobs) == 0 || slices.ContainsFunc(p.Knobs, func(k tuning.Prospect) bool { return k.When != tuning.Never })
	}
	if v.Policy.Search.System == tuning.Pipelined && len(v.Prospects) > 0 && len(v.Prospects[0].Knobs) > 0 && !slices.ContainsFunc(v.Prospects, acts) {
		warn("inside the trials %s", strings.TrimPrefix(v.Prospects[0].Headline, "valid, but "))
	}
	return out
}

// searchLine is a search in a line, and what of it is worth another line.
func searchLine(x trials.State, now time.Time) (line, mark string) {
	s := x.Searcher()
	parts := []string{x.ID + " " + searchState(x, s)}
	if r := s.Ranking(); len(r) > 0 {
		parts = append(parts, fmt.Sprintf("best %s in trial %d", value(s.Best(r[0])), r[0].Number))
		mark = parts[1]
	}
	if left, ok := x.Left(now); ok {
		parts = append(parts, "ends about "+clock(now.Add(left), now))
	}
	ended := tuning.Count(x.Trials, func(t trials.Trial) bool { return t.State != searcher.Running && !t.Busy })
	return strings.Join(parts, "  "), fmt.Sprintf("%d %s %t %s", ended, x.Closing, x.Settled(), mark)
}

// mostDrawn is how many trials that run are drawn at one time.
const mostDrawn = 12

// searchPicture is a search as a terminal shows it while it runs.
func searchPicture(x trials.State, now time.Time, width int) string {
	text := searchBrief(x, now)
	x.Trials = slices.DeleteFunc(slices.Clone(x.Trials), func(t trials.Trial) bool { return !t.Busy })
	more := len(x.Trials) > mostDrawn
	if x.Trials = x.Trials[:min(len(x.Trials), mostDrawn)]; len(x.Trials) > 0 {
		text += "\n" + searchTrials(x)
	}
	if more {
		text += "…\n"
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		text := []rune(line)
		lines[i] = string(text[:min(len(text), max(width-1, 0))])
	}
	return strings.Join(lines, "\n") + "\n"
}
