package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// doubting is a planner that recalls one core, doubts it as soon as it was
// measured, and after that goes back to it or stays.
func doubting(back bool) func(tuning.State) tuning.Decision {
	return func(s tuning.State) tuning.Decision {
		_, own := tuning.Reference(s.Trials)
		switch {
		case s.Pending:
			return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: cores(1)}
		case s.Measured != tuning.ReasonNone:
			return hold(tuning.ReasonProfiling)
		case !own && s.Probes == 0:
			return tuning.Decision{Action: tuning.Probe, Reason: tuning.ReasonDoubted, Settings: s.Own}
		case own && back && s.Restarts == 0:
			return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonProbeWon, Settings: cores(1)}
		case own && back:
			return hold(tuning.ReasonAlreadyBest)
		}
		return hold(tuning.ReasonProbesNoGain)
	}
}

func TestARecalledSettingThatIsDoubtedIsHeldAgainstItsOwners(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, behaviour string
		back            bool
		attempts        int
		end             tuning.Settings
		remembered      bool
	}{
		{"it was worse, and the next such job is not given it", "parallel=1", false, 2, cores(4), true},
		{"it was no worse, and the job goes back", "parallel=0", true, 3, cores(1), false},
		{"it was no worse, and going back was not worth it", "parallel=0", false, 2, cores(4), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.decide = doubting(tc.back)
				rec, job := w.end(t, w.mustSubmit(t, "train", "epochs=12 seconds=2 checkpoint=500ms "+tc.behaviour))
				if len(job.Attempts) != tc.attempts || job.State != driver.Succeeded || len(rec.Probed) != 1 {
					t.Errorf("%d attempts, %s, %d probes; want %d, succeeded, 1", len(job.Attempts), job.State, len(rec.Probed), tc.attempts)
				}
				if got := rec.Settings(0); !got.Equal(tc.end) {
					t.Errorf("it ended under %s, want %s", got, tc.end)
				}
				if !rec.Recalled() {
					t.Error("the record does not tell that it was recalled")
				}
				if got := slices.ContainsFunc(w.lessons[0].Regressed, cores(1).Equal); got != tc.remembered {
					t.Errorf("one core remembered as worse: %t, want %t", got, tc.remembered)
				}
				doubted := reconcile.Arrow{From: reconcile.Verifying, To: reconcile.Changing, By: reconcile.DecidedChange}
				if !slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool {
					return reconcile.Arrow{From: e.From, To: e.To, By: e.Trigger} == doubted && e.Reason == tuning.ReasonDoubted
				}) {
					t.Error("no doubt in the history")
				}
			})
		})
	}
}

func TestASettledJobThatGotWorseGoesWhereThePlannerSends(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		worse  tuning.Decision
		phases []reconcile.Phase
		end    tuning.Settings
	}{
		{"back to its owner's settings", tuning.Decision{Action: tuning.RollBack, Settings: cores(4)}, []reconcile.Phase{reconcile.Changing, reconcile.Settled}, cores(4)},
		{"to a better setting it measured", tuning.Decision{Action: tuning.Move, Settings: cores(2)}, []reconcile.Phase{reconcile.Changing, reconcile.Verifying}, cores(2)},
		{"nowhere", tuning.Decision{Action: tuning.Hold}, nil, cores(1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				tc.worse.Reason = tuning.ReasonRegressed
				w.decide = func(s tuning.State) tuning.Decision {
					switch {
					case s.Pending:
						return hold(tuning.ReasonProfiling)
					case s.Outcome != nil && s.Outcome.Verdict == tuning.Regressed && s.Current.Equal(cores(1)):
						return tc.worse
					case s.Current.Equal(s.Own) && s.Restarts == 0:
						return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonPredicted, Settings: cores(1)}
					}
					return hold(tuning.ReasonAlreadyBest)
				}
				w.compare = func(c verify.Input) tuning.Outcome {
					if c.Tuned.Equal(cores(1)) {
						return worse(c)
					}
					return tuning.Outcome{Verdict: tuning.Improved, Reason: tuning.ReasonImproved}
				}
				rec, job := w.end(t, w.mustSubmit(t, "train", "epochs=20 seconds=2 checkpoint=500ms"))
				var phases []reconcile.Phase
				for i, e := range rec.History {
					if e.From == reconcile.Settled && e.To != reconcile.Ended {
						phases = append(phases, e.To)
						if e.To == reconcile.Changing {
							phases = append(phases, rec.History[i+1].To)
						}
					}
				}
				if !slices.Equal(phases, tc.phases) || !rec.Settings(0).Equal(tc.end) || job.State != driver.Succeeded {
					t.Errorf("after it settled %v, under %s, %s; want %v, %s, succeeded", phases, rec.Settings(0), job.State, tc.phases, tc.end)
				}
			})
		})
	}
}

func TestTheReasonOfASettledJobFollowsTheComparison(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(s tuning.State) tuning.Decision {
			if !s.Pending && s.Restarts == 0 {
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonPredicted, Settings: cores(1)}
			}
			return hold(tuning.ReasonAlreadyBest)
		}
		w.compare = func(c verify.Input) tuning.Outcome {
			if len(c.After) < 6 {
				return tuning.Outcome{Verdict: tuning.Improved, Reason: tuning.ReasonImproved}
			}
			return tuning.Outcome{Verdict: tuning.Inconclusive, Reason: tuning.ReasonInconclusive}
		}
		rec, _ := w.end(t, w.mustSubmit(t, "train", "epochs=20 seconds=2 checkpoint=500ms"))
		settled := slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool { return e.Reason == tuning.ReasonImproved })
		if !settled || rec.Reason != tuning.ReasonInconclusive {
			t.Errorf("it settled as improved: %t, and ended as %s; want true, inconclusive", settled, rec.Reason)
		}
	})
}

// A doubt keeps the planner from changing a recalled job: its setting stays
// until it was compared.
func TestARecalledJobIsLeftAloneWithoutADoubt(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(s tuning.State) tuning.Decision {
			if s.Pending {
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: cores(1)}
			}
			return tuning.Decision{Action: tuning.Probe, Reason: tuning.ReasonProbeNext, Settings: cores(2)}
		}
		rec, job := w.end(t, w.mustSubmit(t, "train", usual))
		if len(job.Attempts) != 1 || len(rec.Probed) != 0 || rec.Reason != tuning.ReasonRecalled {
			t.Errorf("%d attempts, %d probes, reason %s; want 1, 0, recalled", len(job.Attempts), len(rec.Probed), rec.Reason)
		}
	})
}

// A change of only the memory is not a recall: there is nothing to doubt.
func TestAJobGivenLessMemoryIsNotRecalled(t *testing.T) {
	t.Parallel()
	big, small := tuning.Number(8<<30), tuning.Number(1<<30)
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.policy.Knobs = append(w.policy.Knobs, tuning.Knob{Name: tuning.Memory, Min: small, Max: big})
		w.read = func(job driver.Job) reconcile.Reading {
			return reconcile.Reading{Policy: w.policy, Own: own(job).With(tuning.Memory, big), Kind: tuning.JobKind{Owner: "alice", Name: job.Name}}
		}
		w.decide = func(s tuning.State) tuning.Decision {
			if s.Pending {
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: s.Own.With(tuning.Memory, small)}
			}
			return tuning.Decision{Action: tuning.Probe, Reason: tuning.ReasonDoubted, Settings: s.Own}
		}
		rec, job := w.end(t, w.mustSubmit(t, "train", usual))
		if rec.Recalled() || len(job.Attempts) != 1 || job.Attempts[0].Change.MemoryBytes != 1<<30 {
			t.Errorf("recalled %t, attempts %+v; want false and one attempt with less memory", rec.Recalled(), job.Attempts)
		}
	})
}

func TestARecalledJobThatLostQualityIsARegression(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		untuned   *float64
		reached   float64
		regressed bool
	}{
		{"worse than untuned jobs of its kind", new(0.9), 0.8, true},
		{"as good as they", new(0.9), 0.895, false},
		{"how good they were is unknown", nil, 0.1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				batch := func(n float64) tuning.Settings { return cores(4).With("batch", tuning.Number(n)) }
				w.site.PauseAfter = 1
				w.policy.Quality = &tuning.Quality{Direction: "max", MaxLoss: 0.01}
				w.policy.Knobs = append(w.policy.Knobs, tuning.Knob{
					Name: "batch", Env: "BATCH", Values: []tuning.Value{tuning.Number(32), tuning.Number(256)},
				})
				w.read = func(job driver.Job) reconcile.Reading {
					return reconcile.Reading{Policy: w.policy, Own: batch(32), Kind: tuning.JobKind{Owner: "alice", Name: job.Name}}
				}
				w.epoch = func(e *tuning.Epoch) { e.Quality = &tc.reached }
				if tc.untuned != nil {
					w.past = []tuning.PastRun{{Began: batch(32), End: tuning.EndReached, Quality: tc.untuned}}
				}
				w.breaks = func(q search.Returning, s tuning.Settings) bool {
					last := q.Past[len(q.Past)-1]
					if !s.Equal(batch(256)) || !last.Began.Equal(s) || last.End != tuning.EndReached || !q.Own.Equal(batch(32)) {
						t.Errorf("asked whether %s broke the guard, by %+v: want batch=256, and this run the last", s, last)
					}
					return len(q.Past) > 1 && *last.Quality < *q.Past[0].Quality*(1-q.Policy.Quality.MaxLoss)
				}
				w.decide = func(s tuning.State) tuning.Decision {
					if s.Pending {
						return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: batch(256)}
					}
					return hold(tuning.ReasonProfiling)
				}
				rec, _ := w.end(t, w.mustSubmit(t, "train", usual))
				lost := rec.Outcome != nil && rec.Outcome.Verdict == tuning.Regressed && rec.Outcome.Reason == tuning.ReasonQualityLost
				if lost != tc.regressed || (len(w.pauses) == 1) != tc.regressed {
					t.Errorf("outcome %+v, %d pauses; want a regression: %t", rec.Outcome, len(w.pauses), tc.regressed)
				}
				if got := slices.ContainsFunc(w.lessons[0].Regressed, batch(256).Equal); got != tc.regressed {
					t.Errorf("remembered: %t, want %t", got, tc.regressed)
				}
				if f := w.lessons[0].Final; f == nil || f.Epochs != 12 || f.Quality != tc.reached || !f.Settings.Equal(tuning.Settings{"batch": tuning.Number(256)}) {
					t.Errorf("the lesson has final quality %+v, want %g after 12 epochs with batch=256", f, tc.reached)
				}
			})
		})
	}
}

func TestALessonSaysWhenTheTargetWasReached(t *testing.T) {
	t.Parallel()
	rising := func(e tuning.Epoch) *float64 { return new(float64(e.Number) / 20) }
	for _, tc := range []struct {
		name    string
		target  *float64
		quality func(tuning.Epoch) *float64
		change  func(tuning.State) tuning.Decision
		want    *tuning.Reached
	}{
		{"after so many epochs", new(0.4), rising, nil, &tuning.Reached{Target: 0.4, Epochs: 8}},
		{"it is lost again, and was reached", new(0.4), func(e tuning.Epoch) *float64 { return new(float64((e.Number*8)%13) / 20) }, nil, &tuning.Reached{Target: 0.4, Epochs: 1}},
		{"never", new(0.9), rising, nil, &tuning.Reached{Target: 0.9}},
		{"without a target", nil, rising, nil, nil},
		{"without a quality", new(0.4), func(tuning.Epoch) *float64 { return nil }, nil, nil},
		{"what it learned changed on the way", new(0.4), rising, func(s tuning.State) tuning.Decision {
			if !s.Pending && s.Measured == tuning.ReasonNone && s.Restarts == 0 {
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonProbeWon, Settings: s.Own.With("batch", tuning.Number(256))}
			}
			return hold(tuning.ReasonProfiling)
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.policy.Quality = &tuning.Quality{Direction: "max", MaxLoss: 0.01, Target: tc.target}
				w.policy.Knobs = append(w.policy.Knobs, tuning.Knob{
					Name: "batch", Env: "BATCH", Values: []tuning.Value{tuning.Number(32), tuning.Number(256)}, Default: tuning.Number(32),
				})
				w.epoch = func(e *tuning.Epoch) { e.Quality = tc.quality(*e) }
				w.decide = func(s tuning.State) tuning.Decision {
					if tc.change == nil {
						return hold(tuning.ReasonAlreadyBest)
					}
					return tc.change(s)
				}
				w.end(t, w.mustSubmit(t, "train", usual))
				if got := w.lessons[0].Reached; !cmp.Equal(got, tc.want) {
					t.Errorf("got %+v, want %+v", got, tc.want)
				}
			})
		})
	}
}

func TestTheSchedulerIsAskedAboutARestartOnlyBeforeOne(t *testing.T) {
	t.Parallel()
	soon := 90 * time.Second
	for _, tc := range []struct {
		name    string
		answer  driver.Outlook
		err     error
		wants   bool // the planner wants to act
		closing bool // and it is near a closing
		moved   bool
	}{
		{"nothing is wanted, and nothing is asked", driver.Outlook{}, nil, false, false, false},
		{"nothing stands against it", driver.Outlook{Wait: new(time.Duration)}, nil, true, false, true},
		{"the queue is long", driver.Outlook{Wait: new(time.Hour)}, nil, true, false, false},
		{"it is unknown", driver.Outlook{}, driver.ErrTransient, true, false, true},
		{"it is unknown, and others wait", driver.Outlook{Crowded: "others wait"}, nil, true, false, false},
		{"a reservation comes", driver.Outlook{ClosedBy: "maint"}, nil, true, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				asked, began := 0, time.Now()
				if tc.closing {
					tc.answer.Closed = began.Add(soon)
				}
				w.outlook = func(driver.JobID) (driver.Outlook, error) { asked++; return tc.answer, tc.err }
				w.decide = func(s tuning.State) tuning.Decision {
					switch {
					case s.Pending || s.Measured != tuning.ReasonNone:
						return hold(tuning.ReasonProfiling)
					case s.Wait > time.Minute, s.Crowded == "others wait":
						return hold(tuning.ReasonProfiling) // one that waits
					case s.ClosedIn != 0 && (s.ClosedIn != began.Add(soon).Sub(s.Now) || s.ClosedBy != "maint"):
						t.Errorf("closed in %s by %q, want by maint at %s", s.ClosedIn, s.ClosedBy, soon)
					case s.ClosedIn == 0 && tc.wants && s.Restarts == 0:
						return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonProbeWon, Settings: cores(1)}
					}
					return hold(tuning.ReasonProfiling)
				}
				id := w.mustSubmit(t, "train", usual)
				_, job := w.end(t, id)
				if moved := len(job.Attempts) > 1; moved != tc.moved {
					t.Errorf("moved %t, want %t", moved, tc.moved)
				}
				// The job runs for some 25 s, and would move at each of its looks.
				if asked > 4 || (asked > 0) != tc.wants {
					t.Errorf("asked %d times, want it to be asked: %t, and an answer to stand for a while", asked, tc.wants)
				}
			})
		})
	}
}

func TestATrialOnFewerCoresGetsItsOwnersBackOnceAllTrialsFit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		alone    time.Duration // after which it is the last one
		attempts int
		end      tuning.Settings
	}{
		{"when it is the last one", 10 * time.Second, 2, cores(4)},
		{"not while others wait", time.Hour, 1, cores(1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				many, one := tuning.Share{Cores: 4, Trials: 4, Serial: .25}, tuning.Share{Cores: 4, Trials: 1, Serial: 1}
				began := time.Now()
				w.shares = func() tuning.Share {
					if time.Since(began) < tc.alone {
						return many
					}
					return one
				}
				w.restart()
				w.policy.TrialOf = &tuning.Search{ID: "s", Share: many}
				w.decide = func(s tuning.State) tuning.Decision {
					switch {
					case s.Pending:
						return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: cores(1)}
					case s.Policy.TrialOf.Share.Trials == 1 && s.Restarts == 0:
						return tuning.Decision{Action: tuning.RollBack, Reason: tuning.ReasonNoTrialWaits, Settings: s.Own}
					}
					return hold(tuning.ReasonAlreadyBest)
				}
				rec, job := w.end(t, w.mustSubmit(t, "train", "epochs=20 seconds=2 checkpoint=500ms parallel=1"))
				if len(job.Attempts) != tc.attempts || job.State != driver.Succeeded || !rec.Settings(0).Equal(tc.end) {
					t.Errorf("%d attempts, %s, under %s; want %d, succeeded, %s", len(job.Attempts), job.State, rec.Settings(0), tc.attempts, tc.end)
				}
				if got := rec.Policy.TrialOf.Share; got.Trials != many.Trials {
					t.Errorf("it is judged by %+v, want what it was chosen by", got)
				}
				if slices.ContainsFunc(w.lessons[0].Regressed, cores(1).Equal) {
					t.Error("one core is remembered as worse, which it was not for the search")
				}
			})
		})
	}
}
