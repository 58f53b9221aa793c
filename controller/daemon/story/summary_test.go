package story_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/daemon/story"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// unseen ends the next steps of a job that no exporter measures.
const unseen = "; without cgroups a job of driver local is measured by an exporter of its own user alone"

func TestAStoryOpensWithThreeLines(t *testing.T) {
	t.Parallel()
	improved := &tuning.Outcome{Verdict: tuning.Improved, Reason: tuning.ReasonImproved, Measure: tuning.Time, LogRatio: -.25, Low: -.3, High: -.2, Level: .95, Pairs: 9, Tuned: cores(2)}
	tunedEpochs := epochs(4, 10, "rapl")
	for i := range 4 {
		e := tunedEpochs[i]
		e.Number, e.Attempt, e.Settings, e.End = i+5, 2, cores(2), e.Start.Add(time.Second)
		tunedEpochs = append(tunedEpochs, e)
	}
	elsewhere := slices.Clone(tunedEpochs)
	for i := range elsewhere[4:] {
		elsewhere[i+4].Source = tuning.Modelled
	}
	moved := func(epochs []tuning.Epoch) reconcile.Course {
		return reconcile.Course{State: driver.Running, Epochs: epochs, Runs: []reconcile.Run{{Attempt: 1, Settings: cores(8)}, {Attempt: 2, Settings: cores(2), Action: tuning.Move}}}
	}
	another := slices.Clone(tunedEpochs)
	for i := range another {
		another[i].Machine = map[bool]string{true: "a", false: "b"}[i < 4]
	}
	suspended := moved(slices.Clone(tunedEpochs))
	suspended.Epochs[7].Polluted, suspended.Epochs[7].End = true, at(3600)
	suspended.Runs[1].Still = []tuning.Span{{From: at(30), To: at(3000)}}
	together := epochs(5, 0, "")
	together[4].Together = 5
	nothing := slices.Concat(epochs(4, 0, "rapl"), tunedEpochs[4:])
	for _, c := range []struct {
		name                  string
		rec                   reconcile.Record
		verdict, effect, next string
	}{
		{
			"joules of another source do not compare",
			reconcile.Record{Course: moved(elsewhere)},
			"running, tuned to cores=2", "per epoch: time -50.0 %, cost -87.5 %", "wait: Pitchpipe measures it and decides at the end of an epoch",
		},
		{
			"a job that has not started is not measured",
			reconcile.Record{Phase: reconcile.Waiting, Course: reconcile.Course{State: driver.Pending}},
			"pending, unchanged so far", "none: it runs as its owner asked", "wait: it has not started",
		},
		{
			"a job whose output the controller may not read",
			reconcile.Record{Phase: reconcile.Settled, Reason: tuning.ReasonNoProgress, Course: reconcile.Course{State: driver.Running, Unheard: "the token lacks the capability read-fs"}},
			"running, unchanged: " + tuning.ReasonNoProgress.Sentence(), "none: it runs as its owner asked",
			"ask the administrator, since its output cannot be read: the token lacks the capability read-fs",
		},
		{
			"less memory alone changes no time",
			reconcile.Record{
				Phase: reconcile.Ended, Course: reconcile.Course{State: driver.Succeeded, Runs: []reconcile.Run{{Attempt: 1, Settings: cores(8).With(tuning.Memory, tuning.Number(1<<30)), Action: tuning.Move}}},
			},
			"succeeded, tuned to cores=8 memory=1GiB", "none on its time: only its memory is another",
			"nothing to do: the next run of its kind starts from what this one showed",
		},
		{
			"epochs on another kind of machine do not compare",
			reconcile.Record{Course: moved(another)},
			"running, tuned to cores=2", "not measured yet", "wait: Pitchpipe measures it and decides at the end of an epoch",
		},
		{
			"a suspended epoch says nothing of its setting",
			reconcile.Record{Course: suspended},
			"running, tuned to cores=2", "per epoch: time -50.0 %, cost -87.5 %, joules +0.0 % (rapl)", "wait: Pitchpipe measures it and decides at the end of an epoch",
		},
		{
			"nothing is no measure",
			reconcile.Record{Course: moved(nothing)},
			"running, tuned to cores=2", "per epoch: time -50.0 %, cost -87.5 %", "wait: Pitchpipe measures it and decides at the end of an epoch",
		},
		{
			"a job without a checkpoint",
			reconcile.Record{Course: reconcile.Course{State: driver.Running, Total: 60, Epochs: epochs(3, 0, "")}, Reason: tuning.ReasonNoCheckpoint},
			"running (epoch 3 of 60), unchanged: it has no checkpoint, so it is never touched while it runs",
			"none: it runs as its owner asked", "add a checkpoint to the stanza, so that the job can change while it runs",
		},
		{
			"a job that left unasked and that its scheduler holds",
			reconcile.Record{
				Identity: reconcile.Identity{Job: "7"}, Course: reconcile.Course{State: driver.Pending, Held: "it left with status 85 unasked (RequeueExitHold)", Total: 60, Epochs: epochs(3, 0, "")},
				Phase: reconcile.Settled, Reason: tuning.ReasonNoKnobs,
			},
			"pending (epoch 3 of 60), held by its scheduler: it left with status 85 unasked (RequeueExitHold); `scontrol release 7` lets it go on",
			"none: it runs as its owner asked", "`scontrol release 7` lets it go on",
		},
		{
			"a running job that is left as it is",
			reconcile.Record{Course: reconcile.Course{State: driver.Running, Total: 60, Epochs: epochs(3, 0, "")}, Phase: reconcile.Settled, Reason: tuning.ReasonTooShort},
			"running (epoch 3 of 60), unchanged: what remains of it is too short for a restart",
			"none: it runs as its owner asked", "nothing to do: it runs on as it is, and what it shows serves the next run of its kind",
		},
		{
			"a running job that may lose too little for a try",
			reconcile.Record{Course: reconcile.Course{State: driver.Running, Total: 60, Epochs: epochs(3, 0, "")}, Phase: reconcile.Held, Reason: tuning.ReasonLossLimit},
			"running (epoch 3 of 60), unchanged: a failed try of another setting could cost this job more than tuning may",
			"none: it runs as its owner asked", "nothing to do: it stays as it is, unless a restart or the wait for one gets shorter",
		},
		{
			"a site that lets no job be changed",
			reconcile.Record{
				Request: reconcile.Request{Policy: tuning.Policy{Mode: tuning.Apply}}, Course: reconcile.Course{State: driver.Running},
				Phase: reconcile.Settled, Reason: tuning.ReasonRecommend,
			},
			"running, unchanged: its mode is recommend: the better setting is named, not applied", "none: it runs as its owner asked",
			"let the site allow it: `default: {max_mode: apply}` in its policy, the file that --site names",
		},
		{
			"a cap is named",
			reconcile.Record{
				Course: reconcile.Course{State: driver.Running},
				Reason: tuning.ReasonSiteCap,
				Story:  reconcile.Story{History: []reconcile.Entry{{Reason: tuning.ReasonSiteCap, Detail: "user_restarts=1 (site.yaml:3)"}}},
			},
			"running, unchanged: a cap of the site's policy is reached: user_restarts=1 (site.yaml:3)",
			"none: it runs as its owner asked", "wait: Pitchpipe measures it and decides at the end of an epoch",
		},
		{
			"a job that is better off",
			reconcile.Record{
				Course: reconcile.Course{State: driver.Running, Total: 60, Epochs: tunedEpochs, Runs: []reconcile.Run{{Attempt: 1, Settings: cores(8)}, {Attempt: 2, Settings: cores(2), Action: tuning.Move}}},
				Reason: tuning.ReasonImproved,
				Tuning: reconcile.Tuning{Outcome: improved, Restarts: []time.Time{at(9)}},
			},
			"running (epoch 8 of 60), tuned to cores=2: it does better than untuned, and the interval excludes zero",
			"seconds per epoch -22.1 % (95 % interval -25.9 % to -18.1 %); cost -87.5 %, joules +0.0 % (rapl)",
			"wait: Pitchpipe measures it and decides at the end of an epoch",
		},
		{
			"a job whose tuning took no time to speak of",
			reconcile.Record{
				Course: reconcile.Course{State: driver.Succeeded, Total: 60, Epochs: epochs(60, 0, "")}, Phase: reconcile.Ended,
				Tuning: reconcile.Tuning{Toll: &tuning.Toll{Seconds: .029, Own: 1, Joules: new(tuning.Joules(-40)), Source: "rapl"}},
			},
			"succeeded (epoch 60 of 60), unchanged so far", "overall, tuning changed the time by less than 0.1 % and saved 40.0 J (rapl)",
			"nothing to do: the next run of its kind starts from what this one showed",
		},
		{
			"a job whose tuning took some time",
			reconcile.Record{
				Course: reconcile.Course{State: driver.Succeeded, Total: 60, Epochs: epochs(60, 0, "")}, Phase: reconcile.Ended,
				Tuning: reconcile.Tuning{Toll: &tuning.Toll{Seconds: .031, Own: 1}},
			},
			"succeeded (epoch 60 of 60), unchanged so far", "overall, tuning added 31 ms (0.1 % of the untuned time)",
			"nothing to do: the next run of its kind starts from what this one showed",
		},
		{
			"a job that costs less in a little more time",
			reconcile.Record{
				Request: reconcile.Request{Policy: tuning.Policy{Objective: tuning.Cost}},
				Course:  reconcile.Course{State: driver.Succeeded, Total: 60, Epochs: epochs(60, 0, "")}, Phase: reconcile.Ended,
				Tuning: reconcile.Tuning{Toll: &tuning.Toll{Seconds: 1.4, Own: 1, Epochs: -29.4, Joules: new(tuning.Joules(-40)), Source: tuning.Part("rapl", 2)}},
			},
			"succeeded (epoch 60 of 60), unchanged so far",
			"overall, tuning added 1.4 s (2.3 % of the untuned time), saved 49.0 % of its untuned cost and saved 40.0 J (rapl, 1 of 2 nodes)",
			"nothing to do: the next run of its kind starts from what this one showed",
		},
		{
			"a job that was cancelled early compares with the work that it did",
			reconcile.Record{
				Course: reconcile.Course{State: driver.Cancelled, Total: 200, Epochs: epochs(20, 0, "")}, Phase: reconcile.Ended,
				Tuning: reconcile.Tuning{Toll: &tuning.Toll{Seconds: -12, Own: 2}},
			},
			"cancelled (epoch 20 of 200), unchanged so far", "overall, tuning saved 12.0 s (30.0 % of the untuned time)",
			"nothing to do: the next run of its kind starts from what this one showed",
		},
		{
			"a job that could not be started",
			reconcile.Record{Course: reconcile.Course{State: driver.NotStarted}, Phase: reconcile.Ended, Reason: tuning.ReasonFailed, Detail: "no such program"},
			"not-started: no such program", "none: it was left as its owner asked", "correct what kept it from starting, and submit it again",
		},
		{
			"a job whose memory was cut too far",
			reconcile.Record{
				Course: reconcile.Course{State: driver.Succeeded, Total: 8, Epochs: epochs(8, 0, ""), Runs: []reconcile.Run{{Attempt: 1, Settings: cores(8).With(tuning.Memory, tuning.Number(1)), Action: tuning.Move}, {Attempt: 2, Settings: cores(8)}}},
				Phase:  reconcile.Ended, Reason: tuning.ReasonNoCheckpoint,
				Story: reconcile.Story{History: []reconcile.Entry{{Reason: tuning.ReasonOutOfMemory, Attempt: 2}}},
			},
			"succeeded (epoch 8 of 8), back under its owner's settings: it ran out of memory under a tuned limit, so its owner's value is back",
			"none at the end; the cost of trying is unknown", "give the knob memory a higher min=, or leave it out",
		},
		{
			"a job with a short time limit",
			reconcile.Record{Course: reconcile.Course{State: driver.Succeeded}, Phase: reconcile.Ended, Reason: tuning.ReasonNearLimit},
			"succeeded, unchanged: its time limit is too near for a restart", "none: it was left as its owner asked",
			"ask for a longer time limit: in the last minutes before it, the site's limit_reserve, no job is restarted",
		},
		{
			"a job with the knob memory alone",
			reconcile.Record{Request: reconcile.Request{Policy: tuning.Policy{Knobs: []tuning.Knob{{Name: tuning.Memory}}}}, Course: reconcile.Course{State: driver.Running}, Reason: tuning.ReasonNoKnobs},
			"running, unchanged: no knob has another value that its owner and the site allow while it runs", "none: it runs as its owner asked",
			"nothing to do: memory changes before a start, once earlier runs have shown how much such jobs need",
		},
		{
			"a tuned job that was not measured well",
			reconcile.Record{
				Course: reconcile.Course{State: driver.Succeeded, Total: 8, Epochs: epochs(8, 0, ""), Runs: []reconcile.Run{{Attempt: 1, Settings: cores(2), Action: tuning.Move}}},
				Phase:  reconcile.Ended, Reason: tuning.ReasonRecalled,
				Tuning: reconcile.Tuning{Outcome: &tuning.Outcome{Verdict: tuning.Inconclusive, Reason: tuning.ReasonPolluted}},
			},
			"succeeded (epoch 8 of 8), tuned to cores=2: jobs of this kind have run before and their best setting is known",
			"unknown: other work on the node disturbed the measurement", "nothing to do: the next run of its kind starts from what this one showed",
		},
		{
			"a job that left as if it had saved",
			reconcile.Record{
				Request: reconcile.Request{Policy: tuning.Policy{Checkpoint: &tuning.Checkpoint{Exit: 85}}},
				Course:  reconcile.Course{State: driver.Failed}, Phase: reconcile.Ended, Reason: tuning.ReasonFailed, Detail: "exit status 85",
			},
			"failed: exit status 85", "none: it was left as its owner asked",
			"let it exit with 85, the status of its checkpoint, only after the signal: no save was asked for",
		},
		{
			"a job that failed",
			reconcile.Record{Identity: reconcile.Identity{Job: "local-6"}, Course: reconcile.Course{State: driver.Failed}, Phase: reconcile.Ended, Reason: tuning.ReasonFailed, Detail: "exit status 3"},
			"failed: exit status 3", "none: it was left as its owner asked", "see what it printed: pitchpipe logs local-6",
		},
		{
			"a job that could not go on after a move",
			reconcile.Record{
				Identity: reconcile.Identity{Job: "7"}, Request: reconcile.Request{Own: cores(2)}, Phase: reconcile.Ended, Reason: tuning.ReasonResumeFailed, Detail: "exit status 3",
				Course: reconcile.Course{State: driver.Failed, Total: 700, Epochs: []tuning.Epoch{{Number: 4, Attempt: 1}}, Runs: []reconcile.Run{{Attempt: 1, Settings: cores(2)}, {Attempt: 2, Settings: cores(1), Action: tuning.Move}}},
				Tuning: reconcile.Tuning{Toll: &tuning.Toll{Seconds: 5, Own: 1, Epochs: 5}},
			},
			"failed (epoch 4 of 700): exit status 3; it failed right after tuning restarted it with cores=1: it could not go on from its checkpoint, or needs what the setting took",
			"overall, tuning added 5.0 s (125.0 % of the untuned time)",
			"correct how the program loads its checkpoint, and see what it printed: pitchpipe logs 7",
		},
		{
			"a job that the signal of its checkpoint ended",
			reconcile.Record{
				Identity: reconcile.Identity{Job: "8"}, Course: reconcile.Course{State: driver.Failed}, Phase: reconcile.Ended, Reason: tuning.ReasonSignalEnded, Detail: "killed by SIGUSR1",
			},
			"failed: killed by SIGUSR1; the signal that asks it to save ended it: its program, or a shell above it, does not handle the signal",
			"none at the end; the cost of trying is unknown",
			"handle the signal in the program, and start the program with exec as the last line of its script",
		},
		{
			"a job that failed under Slurm",
			reconcile.Record{Identity: reconcile.Identity{Job: "6"}, Course: reconcile.Course{State: driver.Failed}, Phase: reconcile.Ended, Reason: tuning.ReasonFailed, Detail: "failed: exit status 3"},
			"failed: exit status 3", "none: it was left as its owner asked", "see what it printed: pitchpipe logs 6",
		},
		{
			"a job of whose lines none matched",
			reconcile.Record{
				Identity: reconcile.Identity{Job: "7"}, Request: reconcile.Request{Policy: tuning.Policy{Progress: tuning.Progress{Pattern: "epoch"}}},
				Course: reconcile.Course{State: driver.Succeeded, Peak: 1}, Phase: reconcile.Ended, Reason: tuning.ReasonNoCheckpoint,
			},
			"succeeded, unchanged: no output line matched progress pattern=", "none: it was left as its owner asked",
			"compare progress pattern= with pitchpipe logs 7; lines of more than 64 KiB do not count",
		},
		{
			"a job that counts its epochs from zero",
			reconcile.Record{
				Identity: reconcile.Identity{Job: "7"}, Request: reconcile.Request{Policy: tuning.Policy{Progress: tuning.Progress{Pattern: "epoch"}}},
				Course: reconcile.Course{State: driver.Succeeded, Total: 5, Epochs: epochs(4, 0, "")}, Phase: reconcile.Ended, Reason: tuning.ReasonNoCheckpoint,
			},
			"succeeded (epoch 4 of 5), unchanged: it has no checkpoint, so it is never touched while it runs", "none: it was left as its owner asked",
			"its last line said epoch 4 of 5: if its first said 0, let it count its epochs from 1",
		},
		{
			"a job whose lines came all at once",
			reconcile.Record{
				Identity: reconcile.Identity{Job: "7"}, Request: reconcile.Request{Policy: tuning.Policy{Progress: tuning.Progress{Pattern: "epoch"}}},
				Course: reconcile.Course{State: driver.Succeeded, Total: 5, Epochs: together}, Phase: reconcile.Ended, Reason: tuning.ReasonNoCheckpoint,
			},
			"succeeded (epoch 5 of 5), unchanged: it has no checkpoint, so it is never touched while it runs", "none: it was left as its owner asked",
			"its lines came all at once: flush each of them, as with print(..., flush=True) or python -u",
		},
		{
			"a running job without an epoch",
			reconcile.Record{
				Identity: reconcile.Identity{Job: "7"}, Request: reconcile.Request{Policy: tuning.Policy{Progress: tuning.Progress{Pattern: "epoch"}}},
				Course: reconcile.Course{State: driver.Running, Peak: 1}, Phase: reconcile.Settled, Reason: tuning.ReasonTooShort,
			},
			"running, unchanged: what remains of it is too short for a restart", "none: it runs as its owner asked",
			"wait for its first epoch; if it has printed one, compare progress pattern= with pitchpipe logs 7",
		},
		{
			"a running job that no exporter measures",
			reconcile.Record{
				Identity: reconcile.Identity{Job: "7"}, Request: reconcile.Request{Policy: tuning.Policy{Progress: tuning.Progress{Pattern: "epoch"}}},
				Course: reconcile.Course{State: driver.Running}, Phase: reconcile.Settled, Reason: tuning.ReasonTooShort,
			},
			"running, unchanged: what remains of it is too short for a restart", "none: it runs as its owner asked",
			"wait for its first epoch; if it has printed one, compare progress pattern= with pitchpipe logs 7" + unseen,
		},
		{
			"a job without samples",
			reconcile.Record{Course: reconcile.Course{State: driver.Succeeded}, Phase: reconcile.Ended, Reason: tuning.ReasonNoSamples},
			"succeeded, unchanged: the exporter has no samples of it", "none: it was left as its owner asked",
			"start pitchpipe-exporter on the node of the job" + unseen,
		},
		{
			"a job that no exporter measured",
			reconcile.Record{
				Identity: reconcile.Identity{Job: "7"}, Request: reconcile.Request{Policy: tuning.Policy{Progress: tuning.Progress{Pattern: "epoch"}}},
				Course: reconcile.Course{State: driver.Succeeded}, Phase: reconcile.Ended, Reason: tuning.ReasonNoCheckpoint,
			},
			"succeeded, unchanged: it has no checkpoint, so it is never touched while it runs", "none: it was left as its owner asked",
			"see that pitchpipe-exporter runs on its node, and compare progress pattern= with pitchpipe logs 7" + unseen,
		},
		{
			"a job that met its time limit",
			reconcile.Record{Course: reconcile.Course{State: driver.TimeExceeded}, Phase: reconcile.Ended, Reason: tuning.ReasonNoCheckpoint, Detail: "time limit"},
			"time-exceeded: time limit", "none: it was left as its owner asked", "ask for more time in the next run",
		},
		{
			"a job whose scheduler says only that it was cancelled",
			reconcile.Record{Course: reconcile.Course{State: driver.Cancelled, Total: 60, Epochs: epochs(3, 0, "")}, Phase: reconcile.Ended, Reason: tuning.ReasonCancelled, Detail: "cancelled"},
			"cancelled (epoch 3 of 60)", "none: it was left as its owner asked", "nothing to do: the next run of its kind starts from what this one showed",
		},
		{
			"a job that was cancelled before its first epoch, with little memory so far",
			reconcile.Record{Course: reconcile.Course{State: driver.Cancelled, Peak: 1}, Phase: reconcile.Ended, Reason: tuning.ReasonCancelled, Detail: "cancelled, killed by SIGTERM"},
			"cancelled: killed by SIGTERM", "none: it was left as its owner asked", "nothing to do: the next run of its kind starts from what this one showed",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.rec.Own = cores(8)
			if c.rec.Peak > 0 {
				c.rec.Own = tuning.Settings{tuning.Memory: tuning.Number(1 << 30)}
			}
			s := story.Tell(&c.rec)
			if diff := cmp.Diff([]string{c.verdict, c.effect, c.next}, []string{s.Verdict, s.Effect, s.Next}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestThreadsThatCrowdTheirCoresAreNamed(t *testing.T) {
	t.Parallel()
	features := map[string]float64{"cpu_utilisation": 0.95, "cpu_pressure": 0.9, "threads_per_core": math.Log(4)}
	rec := reconcile.Record{Request: reconcile.Request{Own: cores(2)}, Course: reconcile.Course{State: driver.Succeeded}, Phase: reconcile.Ended}
	rec.Profiles = map[string]tuning.Profile{rec.Own.Key(): {Features: features}}
	const want = "let it run one thread per core, where 4.0 share one: set OMP_NUM_THREADS, or what its program reads, in the job file"
	if s := story.Tell(&rec); s.Next != want {
		t.Errorf("next %q", s.Next)
	}
	rec.Policy.Knobs = []tuning.Knob{{Name: tuning.Threads, Env: "OMP_NUM_THREADS", Follows: tuning.Cores}}
	if s := story.Tell(&rec); s.Next == want {
		t.Error("it has that knob")
	}
}

func TestWhatAJobAskedForIsWhatItsOwnerAskedFor(t *testing.T) {
	t.Parallel()
	own, tuned := tuning.Settings{tuning.Memory: tuning.Number(200 << 20)}, tuning.Settings{tuning.Memory: tuning.Number(27 << 20)}
	rec := reconcile.Record{
		Request: reconcile.Request{Own: own}, Phase: reconcile.Ended,
		Course: reconcile.Course{State: driver.Succeeded, Peak: 9 << 20, Runs: []reconcile.Run{{Attempt: 1, Settings: tuned, Action: tuning.Move}}},
	}
	if s := story.Tell(&rec); s.Next != "ask for less memory in the next run: it used 9 MiB of 200 MiB" {
		t.Errorf("next %q", s.Next)
	}
	rec.Policy.Knobs = []tuning.Knob{{Name: tuning.Memory}}
	if s := story.Tell(&rec); s.Next != "nothing to do: the next run of its kind starts from what this one showed" || s.Usage[0].Requested != 200<<20 {
		t.Errorf("next %q, usage %+v of a job whose memory is tuned", s.Next, s.Usage)
	}
}

func TestAJobThatEndedAtALimitDidNotFailByItself(t *testing.T) {
	t.Parallel()
	for state, want := range map[driver.State]string{
		driver.TimeExceeded: "it reached its time limit", driver.MemoryExceeded: "it ran out of its owner's own memory limit",
		driver.NotStarted: "it could not be started", driver.Failed: "it failed by itself",
	} {
		if got := story.Because(&reconcile.Record{Course: reconcile.Course{State: state}, Reason: tuning.ReasonFailed}); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}

func TestWhyASchedulerDoesNotChangeAJobIsSaid(t *testing.T) {
	t.Parallel()
	observed := tuning.Decision{Evidence: []tuning.Evidence{{Name: "observed", Text: "of two tasks"}}}
	for _, c := range []struct {
		reason     tuning.Reason
		entry      reconcile.Entry
		want, next string
	}{
		{tuning.ReasonUnsupported, reconcile.Entry{Decision: &observed}, "the scheduler cannot make this change: of two tasks", "it runs on as it is"},
		{tuning.ReasonDenied, reconcile.Entry{Detail: "no broker"}, "the scheduler refused the change: no broker", "it runs on as it is"},
		{tuning.ReasonNoRequeue, reconcile.Entry{}, "its owner forbids restarts (--no-requeue), so it is never touched while it runs", "without --no-requeue"},
		{tuning.ReasonOff, reconcile.Entry{}, "its owner switched tuning off for this job", "`pitchpipe off`, or --off"},
	} {
		c.entry.Reason = c.reason
		s := story.Tell(&reconcile.Record{Course: reconcile.Course{State: driver.Running}, Story: reconcile.Story{History: []reconcile.Entry{c.entry}}, Phase: reconcile.Settled, Reason: c.reason})
		if s.Verdict != "running, unchanged: "+c.want || !strings.Contains(s.Next, c.next) {
			t.Errorf("%s: %q, next %q; want %q and %q", c.reason, s.Verdict, s.Next, c.want, c.next)
		}
	}
}

func TestAJobThatWasKilledForMemoryUsedAllOfIt(t *testing.T) {
	t.Parallel()
	own := tuning.Settings{tuning.Memory: tuning.Number(64 << 20)}
	got := story.Tell(&reconcile.Record{Request: reconcile.Request{Own: own}, Course: reconcile.Course{State: driver.MemoryExceeded, Peak: 6 << 20}, Phase: reconcile.Ended})
	if len(got.Usage) != 1 || got.Usage[0].Used != 64<<20 {
		t.Errorf("usage %+v: want what the job was given, although the last sample showed less", got.Usage)
	}
}
