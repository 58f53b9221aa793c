package story

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/report"
	"pitchpipe/controller/respond"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// summarise fills in the three lines that open the story, and what the job used.
func summarise(s *api.Story, r *reconcile.Record) {
	current := settingsNow(r)
	s.Usage = usage(r, current)
	s.Verdict, s.Effect, s.Next = verdict(r, current), effect(r, current), next(r, r.Advice(), s.Usage)
}

func settingsNow(r *reconcile.Record) tuning.Settings { return r.Settings(math.MaxInt) }

func verdict(r *reconcile.Record, current tuning.Settings) string {
	state := string(r.State)
	if r.Total > 0 {
		state += fmt.Sprintf(" (epoch %d of %d)", r.Done(), r.Total)
	}
	if r.Detail != "" && r.State.Ended() && r.State != driver.Succeeded {
		if r.Detail == string(r.State) {
			return state // it says no more
		}
		state += ": " + strings.TrimLeft(strings.TrimPrefix(r.Detail, string(r.State)), ",: ")
		if broke(r) {
			state += "; " + Because(r)
		}
		return state
	}
	why := Because(r)
	if r.Held != "" {
		return state + ", " + why
	}
	if o := r.Outcome; o != nil && o.Verdict != tuning.Inconclusive && r.Because() != tuning.ReasonOutOfMemory {
		why = o.Reason.Sentence()
	}
	switch {
	case !current.Equal(r.Own):
		state += ", tuned to " + settingsText(current)
	case r.Restarted()+len(r.Probed) > 0:
		state += ", back under its owner's settings"
	case len(r.Taken) > 0:
		return state + ", asked to bring its actions to " + settingsText(tuning.Counts(r.Taken))
	case r.Because() == tuning.ReasonNone:
		return state + ", unchanged so far"
	default:
		why, state = Because(r), state+", unchanged"
	}
	return strings.TrimSuffix(state+": "+why, ": ")
}

// Because is the sentence of the record's reason. A cap of the site's policy is named, and why the scheduler refuses.
func Because(r *reconcile.Record) string {
	sentence := r.Because().Sentence()
	if r.Held != "" {
		return "held by its scheduler: " + r.Held + "; " + release(r)
	}
	if unmatched(r) && r.Peak > 0 && (r.Reason == tuning.ReasonNoCheckpoint || r.Reason == tuning.ReasonNearLimit) {
		return "no output line matched progress pattern="
	}
	if text := ends()[r.State]; text != "" && r.Reason == tuning.ReasonFailed {
		return strings.ToLower(text[:1]) + text[1:]
	}
	if r.Reason == tuning.ReasonResumeFailed {
		return strings.Replace(sentence, "restarted it", "restarted it with "+settingsText(settingsNow(r)), 1)
	}
	if b := r.Because(); b != tuning.ReasonSiteCap && b != tuning.ReasonUnsupported && b != tuning.ReasonDenied {
		return sentence
	}
	for _, e := range slices.Backward(r.History) {
		if e.Reason != r.Reason {
			continue
		}
		rule := e.Detail
		if e.Decision != nil {
			for _, v := range e.Decision.Evidence {
				if v.Name == "rule" || v.Name == "observed" {
					rule = v.Text
				}
			}
		}
		if rule != "" {
			return sentence + ": " + rule
		}
	}
	return sentence
}

// broke reports whether a restart by tuning ended the job.
func broke(r *reconcile.Record) bool {
	return r.Reason == tuning.ReasonSignalEnded || r.Reason == tuning.ReasonResumeFailed
}

// release is how a person lets a job go on that its scheduler holds: Slurm alone does so.
func release(r *reconcile.Record) string {
	return fmt.Sprintf("`scontrol release %s` lets it go on", r.Job)
}

// effect compares the present settings with the owner's, per epoch, and says what tuning
// saved in all once the job has ended.
func effect(r *reconcile.Record, current tuning.Settings) string {
	var parts []string
	if o := r.Outcome; o != nil && o.Pairs+o.Runs > 0 {
		parts = append(parts, measureText(o.Measure)+" "+changed(*o))
	}
	parts = append(parts, perEpoch(r, current, len(parts) > 0))
	if _, text, ok := strings.Cut(strings.TrimSuffix(net(r), "."), " Overall, "); ok {
		parts = append(parts, "overall, "+text)
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	switch {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case r.Restarted()+len(r.Probed) == 0 && current.Equal(r.Own) && !broke(r):
		return "none: it " + map[bool]string{true: "was left", false: "runs"}[r.Phase.Over()] + " as its owner asked"
	case current.Equal(r.Own) && r.Phase.Over():
		return "none at the end; the cost of trying is unknown"
	case current.Equal(r.Own):
		return "none now; the cost of trying is known at its end"
	case current.EqualButMemory(r.Own) && r.Restarted() == 0:
		return "none on its time: only its memory is another"
	case r.Phase.Over() && r.Outcome != nil:
		return "unknown: " + r.Outcome.Reason.Sentence()
	}
	return "not measured yet"
}

// trendless is the difference in natural logs from which a trend that was taken out of an effect is worth a word.
const trendless = 0.02

// perEpoch is how much time, cost and joules of an epoch differ from those under the owner's
// settings. With judged it leaves out what the outcome has judged.
func perEpoch(r *reconcile.Record, current tuning.Settings, judged bool) string {
	var own, now *tuning.Trial
	for _, t := range r.Trials() {
		if t.Reference {
			own = &t
		} else if t.Settings.Equal(current) {
			now = &t
		}
	}
	if own == nil || now == nil || own.Epochs == 0 || now.Epochs == 0 {
		return ""
	}
	var parts []string
	change := func(of tuning.Objective, what, source string, a, b float64) {
		if !judged || r.Outcome.Measure != of {
			parts = append(parts, fmt.Sprintf("%s %+.1f %%%s", what, 100*(b/a-1), source))
		}
	}
	change(tuning.Time, "time", "", own.Seconds, now.Seconds)
	tariff := r.Policy.Prices().WithoutEnergy()
	if a, b := tariff.Price(own.Seconds, 0, own.Settings), tariff.Price(now.Seconds, 0, now.Settings); a > 0 {
		change(tuning.Cost, "cost", "", a, b)
	}
	if own.Joules != nil && *own.Joules > 0 && now.Joules != nil && now.Source == own.Source {
		change(tuning.Energy, "joules", " ("+now.Source+")", float64(*own.Joules), float64(*now.Joules))
	}
	lead := map[bool]string{false: "per epoch"}[judged]
	if math.Abs(now.Trend-own.Trend) > trendless {
		lead = strings.TrimSpace(lead + " without its trend")
	}
	if lead == "" || len(parts) == 0 {
		return strings.Join(parts, ", ")
	}
	return lead + ": " + strings.Join(parts, ", ")
}

// unseen is why an exporter that runs may not know a job: its listener runs as the job's user, without a cgroup.
const unseen = "; without cgroups a job of driver local is measured by an exporter of its own user alone"

func nextSteps() map[tuning.Reason]string {
	const nothing, handle = "nothing to do: ", "handle the signal in the program, and start the program with exec as the last line of its script"
	return map[tuning.Reason]string{
		tuning.ReasonNoStanza:       "add a stanza to the job file; `pitchpipe validate FILE` explains it",
		tuning.ReasonBadStanza:      "correct the stanza: `pitchpipe validate FILE` shows each error",
		tuning.ReasonOff:            nothing + "`pitchpipe off`, or --off at its submission, holds for this run alone; the next one without them is tuned",
		tuning.ReasonPaused:         "wait for `pitchpipe resume`; `pitchpipe pause --list` shows who paused it",
		tuning.ReasonControlGroup:   nothing + "runs like this one show what tuning saves",
		tuning.ReasonObserveMode:    "set mode=apply in the stanza to let it be changed",
		tuning.ReasonRecommend:      "set mode=apply in the stanza to let it be changed, where the site allows that",
		tuning.ReasonSiteForbids:    "ask the administrator: the site's policy decides, see `pitchpipe validate FILE`",
		tuning.ReasonNoProgress:     "print a line after each epoch, and match it with progress pattern=",
		tuning.ReasonNoTotal:        "let the progress line name the number of epochs, or set progress total=",
		tuning.ReasonNoCheckpoint:   "add a checkpoint to the stanza, so that the job can change while it runs",
		tuning.ReasonNoRequeue:      "submit it without --no-requeue, so that the job can change while it runs",
		tuning.ReasonFatalSignal:    handle,
		tuning.ReasonSignalEnded:    handle,
		tuning.ReasonResumeFailed:   "correct how the program loads its checkpoint, and see what it printed",
		tuning.ReasonRestartsEnd:    "correct how the program saves and loads its checkpoint: `pitchpipe history` shows the run that failed",
		tuning.ReasonNoSamples:      "start pitchpipe-exporter on the node of the job" + unseen,
		tuning.ReasonPolluted:       "let it run where no other work uses its cores, so that it can be measured",
		tuning.ReasonNearLimit:      "ask for a longer time limit: in the last minutes before it, the site's limit_reserve, no job is restarted",
		tuning.ReasonNoKnobs:        "give a knob more values, or ask the administrator for above_request",
		tuning.ReasonOutOfMemory:    "give the knob memory a higher min=, or leave it out",
		tuning.ReasonNoQualityGuard: "add quality max_loss= to the stanza to let hyperparameters change",
	}
}

// remedies are the next steps of an owner whose job ended without its result.
func remedies() map[driver.State]string {
	return map[driver.State]string{
		driver.Failed:         "see what it printed: pitchpipe logs ",
		driver.NotStarted:     "correct what kept it from starting, and submit it again",
		driver.MemoryExceeded: "ask for more memory in the next run",
		driver.TimeExceeded:   "ask for more time in the next run",
	}
}

// spare is the share of a request below which asking for less is worth a word: half, and what helper threads and samples add.
const spare = 0.55

// unmatched reports whether a job that did its work showed no epoch.
func unmatched(r *reconcile.Record) bool {
	return r.State == driver.Succeeded && r.Done() == 0 && r.Policy.Progress.Pattern != "" && r.Reason != tuning.ReasonNoSamples && r.Reason != tuning.ReasonOff
}

// crowding is how many threads share a core of a job and are in each other's way; 0: none, or they follow its cores.
func crowding(r *reconcile.Record) float64 {
	profile := r.Profiles[r.Own.Key()]
	u := respond.UsageOf(&profile, r.Own)
	follow := slices.ContainsFunc(r.Policy.Knobs, func(k tuning.Knob) bool { return k.Follows == tuning.Cores })
	if follow || r.Own[tuning.Threads].IsSet() || !u.Crowded() {
		return 0
	}
	return u.Threads
}

// compared reports whether this job or its kind showed what other cores do to it.
func compared(r *reconcile.Record) bool {
	return len(r.Restarts)+len(r.Probed) > 0 || !settingsNow(r).EqualButMemory(r.Own) ||
		slices.Contains([]tuning.Reason{tuning.ReasonRemembered, tuning.ReasonAlreadyBest, tuning.ReasonSlower}, r.Because())
}

func next(r *reconcile.Record, advice tuning.Settings, used []api.Usage) string {
	step, known := nextSteps()[r.Because()]
	if _, memory := r.Policy.Knob(tuning.Memory); memory && r.Because() == tuning.ReasonNoKnobs {
		step = "nothing to do: memory changes before a start, once earlier runs have shown how much such jobs need"
	}
	switch remedy := remedies()[r.State]; {
	case r.Held != "":
		return release(r)
	case r.Reason == tuning.ReasonResumeFailed:
		return step + ": pitchpipe logs " + string(r.Job)
	case broke(r):
		return step
	case r.State == driver.Failed && r.Policy.Checkpoint != nil && strings.HasSuffix(r.Detail, fmt.Sprintf("exit status %d", r.Policy.Checkpoint.Exit)):
		return fmt.Sprintf("let it exit with %d, the status of its checkpoint, only after the signal: no save was asked for", r.Policy.Checkpoint.Exit)
	case remedy != "" && r.State == driver.Failed:
		return remedy + string(r.Job)
	case remedy != "":
		return remedy
	case r.State == driver.Cancelled && len(r.Runs) == 0 && r.Done() == 0 && r.Peak == 0:
		return "nothing to do: it never began"
	case r.Unheard != "" && r.Done() == 0:
		return "ask the administrator, since its output cannot be read: " + r.Unheard
	case unmatched(r) && r.Peak == 0: // no exporter measured it, or that of the first of several nodes alone
		return "see that pitchpipe-exporter runs on its node, and compare progress pattern= with pitchpipe logs " + string(r.Job) + unseen
	case unmatched(r):
		return "compare progress pattern= with pitchpipe logs " + string(r.Job) + "; lines of more than 64 KiB do not count"
	case r.State == driver.Succeeded && r.Done() > 0 && r.Done() == r.Total-1:
		return fmt.Sprintf("its last line said epoch %d of %d: if its first said 0, let it count its epochs from 1", r.Done(), r.Total)
	case r.State == driver.Succeeded && r.Done() > 1 && tuning.Last(r.Epochs).Together >= r.Done():
		return "its lines came all at once: flush each of them, as with print(..., flush=True) or python -u"
	case r.Policy.Mode == tuning.Apply && (r.Reason == tuning.ReasonObserveMode || r.Reason == tuning.ReasonRecommend):
		return "let the site allow it: `default: {max_mode: apply}` in its policy, the file that --site names"
	case known:
		return step
	case len(advice) > 0 && !advice.Equal(settingsNow(r)):
		return "ask for " + settingsText(advice) + " in the next run"
	case crowding(r) > 0:
		return fmt.Sprintf("let it run one thread per core, where %.1f share one: set OMP_NUM_THREADS, or what its program reads, in the job file", crowding(r))
	case r.Phase.Over():
		for _, u := range used {
			if r.Done() == 0 && r.State != driver.Succeeded {
				break // what it would have used is unknown
			}
			name := map[string]string{"cpu": tuning.Cores, "memory": tuning.Memory, "gpu": tuning.GPUs}[u.Resource]
			_, tuned := r.Policy.Knob(name)
			if tuned && (name != tuning.Cores || compared(r)) {
				continue
			}
			switch spares := u.Requested > 0 && u.Used < spare*u.Requested; {
			case spares && name == tuning.Cores && u.Requested > 1:
				return fmt.Sprintf("ask for cores=%.0f in the next run: it used %s of %s", max(math.Ceil(u.Used/(2*spare)), 1), u.Text(u.Used), u.Asked())
			case spares && (u.Unit == "bytes" || u.Requested > 1):
				return fmt.Sprintf("ask for %s %s in the next run: it used %s of %s", map[bool]string{true: "less", false: "fewer"}[name == tuning.Memory], name, u.Text(u.Used), u.Asked())
			}
		}
		return "nothing to do: the next run of its kind starts from what this one showed"
	case r.Move != nil:
		return "wait: the change is under way"
	case r.Phase == reconcile.Held && r.Reason == tuning.ReasonLossLimit:
		return "nothing to do: it stays as it is, unless a restart or the wait for one gets shorter"
	case r.Phase == reconcile.Settled && r.Done() == 0 && r.Policy.Progress.Pattern != "":
		step := "wait for its first epoch; if it has printed one, compare progress pattern= with pitchpipe logs " + string(r.Job)
		if r.Peak == 0 {
			step += unseen
		}
		return step
	case r.Phase == reconcile.Settled:
		return "nothing to do: it runs on as it is, and what it shows serves the next run of its kind"
	}
	if r.State == driver.Pending {
		return "wait: it has not started"
	}
	return "wait: Pitchpipe measures it and decides at the end of an epoch"
}

// usage is what the job used of what it asked for: of CPU time over its attempts, of a GPU by the newest profile.
func usage(r *reconcile.Record, current tuning.Settings) []api.Usage {
	var out []api.Usage
	add := func(resource, unit, source string, used float64, asked tuning.Value) {
		out = append(out, api.Usage{Resource: resource, Used: used, Requested: asked.Float(), Unit: unit, Source: source})
	}
	p, measured := r.Profiles[current.Key()]
	if !measured {
		p = r.Profiles[r.Own.Key()]
	}
	seconds := tuning.Sum(r.Runs, func(run reconcile.Run) float64 { return run.CPUOver - run.Suspended.Seconds() })
	if seconds > 0 {
		add("cpu", "cores", "", tuning.Sum(r.Runs, func(run reconcile.Run) float64 { return run.CPU })/seconds, r.Own[tuning.Cores])
	}
	peak := max(r.Peak, p.PeakRSS)
	if r.State == driver.MemoryExceeded { // what it took last is between two samples
		peak = max(peak, tuning.Bytes(current[tuning.Memory].Float()))
	}
	if peak > 0 {
		add("memory", "bytes", "", float64(peak), r.Own[tuning.Memory])
	}
	if busy, ok := p.Features["gpu_busy"]; ok {
		add("gpu", "gpus", "", busy, current[tuning.GPUs])
	}
	joules, source := 0.0, "" // of the epochs that were measured
	seconds = 0
	for _, e := range r.Epochs {
		if e.Joules == nil {
			continue
		}
		joules, seconds = joules+float64(*e.Joules), seconds+e.Seconds()
		if !tuning.IsModelled(source) {
			source = e.Source
		}
	}
	if seconds > 0 {
		add("power", "watts", source, joules/seconds, current[tuning.PowerLimit])
	}
	return out
}

// Spent says what a job has held so far, and what that costs; empty where that is unknown.
func Spent(row report.Row) string {
	seconds, hours := row.Seconds(), row.CoreHours()
	if seconds == nil || hours == nil || *seconds == 0 {
		return ""
	}
	text := fmt.Sprintf("Its attempts ran %s in all and held %s core-hours", report.Duration(*seconds), report.Amount(*hours))
	if c, free, ok := row.Cost(); ok && c.Unit != tuning.DefaultTariff().Unit {
		text += ", which cost " + c.String()
		if free {
			text += " without their energy, which was not measured throughout"
		}
	}
	return text + "."
}
