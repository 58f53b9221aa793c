package slurm_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/slurmcluster"
)

// siteStory: the controller of a site is not root or slurm and has no right over
// anybody's job. It tunes the jobs of two users through the broker, and neither user sees
// or steers the other's.
func (s *stage) siteStory(h deployment) {
	t := s.t
	alpha, beta := slurmcluster.Alpha, slurmcluster.Beta
	here := []string{"--partition=" + h.partition, "--nodelist=" + s.node(2)}
	hisJob, herJob := ticks{user: alpha, name: "his", epochs: movedEpochs}, ticks{user: beta, name: "hers", epochs: movedEpochs, status: 3, live: true}
	nextJob, plainJob := ticks{user: alpha, name: "next", epochs: 2, untuned: true}, ticks{user: beta, name: "plain", epochs: 8, untuned: true}
	keptJob := ticks{user: beta, name: "kept", epochs: 5}
	his, hers := s.submit(hisJob, here...), s.submit(herJob, here...)
	hisBefore, hersBefore := s.record(his.id), s.record(hers.id)
	next := s.submit(nextJob, "--partition="+laterPartition, "--dependency=afterok:"+his.id)
	left := s.submit(ticks{user: alpha, name: "left", epochs: 100000}, here...)
	plain := s.submit(plainJob, here...)
	kept := s.submit(keptJob, append(here, "--hold")...)
	s.follow(h, his, hers, left, kept)
	sweepJob := ticks{user: beta, name: "sweep", epochs: movedEpochs / 2}
	sweep := s.submit(sweepJob, append(here, fmt.Sprintf("--array=1-%d%%2", sweepTasks))...)

	for _, sub := range []submission{his, hers, left} {
		s.await("the first move of "+sub.name, func() error { return s.moved(sub) })
	}
	t.Run("pitchpipe run submits as its caller", func(t *testing.T) { s.in(t).runs(h) })
	t.Run("neither user sees or steers the other's job", func(t *testing.T) { s.in(t).apart(h, his, hers) })
	s.onlyTheOwnerCancels(left, beta)
	t.Run("what its owner holds stays held", func(t *testing.T) {
		s := s.in(t)
		if r := s.record(kept.id); r["JobState"] != "PENDING" || r["Reason"] != "JobHeldUser" {
			t.Errorf("state %s, reason %s", r["JobState"], r["Reason"])
		}
		s.as(beta, "scontrol", "release", kept.id)
	})
	s.ended(h, kept, keptJob, 0)
	s.ended(h, plain, plainJob, 0)
	s.ended(h, his, hisJob, 0)
	s.returns(h, hisJob, his)
	s.ended(h, hers, herJob, 3)
	t.Run("each task of an array is tuned by itself", func(t *testing.T) { s.in(t).swept(h, sweep, sweepJob) })
	s.ended(h, next, nextJob, 0)
	s.status(left)

	t.Run("what identifies the jobs is the same before and after", func(t *testing.T) {
		s.in(t).same(hisBefore, his)
		s.in(t).same(hersBefore, hers)
	})
	t.Run("what was chosen reached the jobs", func(t *testing.T) {
		s.in(t).reached(his, "team %s live none")
		s.in(t).reached(hers, `"threads":%s}`)
	})
	t.Run("accounting has one record a run, all of one job and owner", func(t *testing.T) {
		s.in(t).accounted(his, slurmcluster.AlphaAccount)
	})
	t.Run("the dependant ran once and after the last attempt", func(t *testing.T) { s.in(t).onceAfter(his, next) })
	t.Run("a job that its owner cancelled stays cancelled", func(t *testing.T) { s.in(t).staysCancelled(h, left) })
	t.Run("a job without a stanza is neither seen nor touched", func(t *testing.T) {
		s.in(t).untouched(plain)
		s.in(t).unknown(h, plain)
	})
	t.Run("the broker's audit tells of each effect", func(t *testing.T) { s.in(t).audited(his, hers, plain) })
}

// runs: the controller submits no one's job, so the command does, as its caller.
func (s *stage) runs(h deployment) {
	s.t.Helper()
	j := ticks{user: slurmcluster.Alpha, name: "run", epochs: 3}
	script := strings.Replace(s.script(j), "#SBATCH ", "#SBATCH --partition="+h.partition+" --nodelist="+s.node(2)+"\n#SBATCH ", 1)
	path := filepath.Join(s.c.Home(j.user), "run.sbatch")
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil { //nolint:gosec // its user reads it
		s.t.Fatal(err)
	}
	id := strings.TrimSpace(s.as(j.user, s.w.path("pitchpipe"), "run", "--socket", h.socket, path))
	if _, err := strconv.Atoi(id); err != nil {
		s.t.Fatalf("pitchpipe run printed %q, want a job's number", id)
	}
	s.await("the job of pitchpipe run to end", func() error {
		if r := s.record(id); r["JobState"] != "COMPLETED" || !strings.HasPrefix(r["UserId"], j.user+"(") {
			return fmt.Errorf("%v", r)
		}
		return nil
	})
	s.whole(submission{user: j.user, name: j.name, id: id}, j, s.discards(h, id))
}

// apart: through the controller's socket each user sees their own job, and none of the
// other's.
func (s *stage) apart(h deployment, his, hers submission) {
	s.t.Helper()
	for _, c := range []struct{ mine, other submission }{{his, hers}, {hers, his}} {
		ask := func(args ...string) (string, error) {
			return s.c.Run(s.t.Context(), c.mine.user, s.w.path("pitchpipe"), append(args, "--socket", h.socket)...)
		}
		list, err := ask("status", "--json")
		var jobs []api.Job
		if err := errors.Join(err, json.Unmarshal([]byte(list), &jobs)); err != nil {
			s.t.Errorf("%s: status: %v: %s", c.mine.user, err, list)
		}
		if !slices.ContainsFunc(jobs, func(j api.Job) bool { return j.ID == c.mine.id }) {
			s.t.Errorf("%s does not see his job", c.mine.user)
		}
		for _, j := range jobs {
			if j.Owner != c.mine.user {
				s.t.Errorf("%s sees the job %s of %s", c.mine.user, j.ID, j.Owner)
			}
		}
		if out, err := ask("explain", c.mine.id); err != nil {
			s.t.Errorf("%s: explain of his job: %v: %s", c.mine.user, err, out)
		}
		for _, args := range [][]string{
			{"status", c.other.id},
			{"logs", c.other.id},
			{"explain", c.other.id},
			{"off", c.other.id},
			{"stop", c.other.id},
			{"pause", "job", c.other.id},
			{"pause", "user", c.other.user},
			{"pause"},
		} {
			if out, err := ask(args...); err == nil {
				s.t.Errorf("%s: pitchpipe %s was answered: %s", c.mine.user, strings.Join(args, " "), out)
			}
		}
		if r := s.record(c.other.id); r["JobState"] == "CANCELLED" {
			s.t.Errorf("%s stopped the other's job: %s", c.mine.user, r["JobState"])
		}
	}
}

// unknown: the controller does not know the job, although it may see everybody's.
func (s *stage) unknown(h deployment, sub submission) {
	s.t.Helper()
	list, err := s.c.Run(s.t.Context(), slurmcluster.Controller, s.w.path("pitchpipe"), "status", "--json", "--socket", h.socket)
	var jobs []api.Job
	if err := errors.Join(err, json.Unmarshal([]byte(list), &jobs)); err != nil || len(jobs) == 0 {
		s.t.Errorf("status: %v: %s", err, list)
	}
	if slices.ContainsFunc(jobs, func(j api.Job) bool { return j.ID == sub.id }) {
		s.t.Errorf("the controller knows the job %s", sub.name)
	}
}

// audited: the broker wrote down each requeue and each update of the jobs that were
// moved, and nothing of one that it has nothing to do with.
func (s *stage) audited(his, hers, plain submission) {
	s.t.Helper()
	done := s.audit()
	for _, sub := range []submission{his, hers} {
		verbs := done[sub.id]
		restarts, err := strconv.Atoi(s.record(sub.id)["Restarts"])
		// The cluster itself puts back what leaves with its status, and that is let go. A
		// step is repeated where its answer was lost, and a discard is both of them.
		if err != nil || verbs["signal"]+verbs["discard"] < restarts || verbs["requeue"]+verbs["release"]+verbs["discard"] < restarts || verbs["update"] < restarts {
			s.t.Errorf("%s was restarted %d times (%v), the audit has %v", sub.name, restarts, err, verbs)
		}
	}
	if len(done[plain.id]) > 0 {
		s.t.Errorf("the audit has %v of %s", done[plain.id], plain.name)
	}
}

// audit counts what the broker did, by job and verb.
func (s *stage) audit() map[string]map[string]int {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.w.path("broker"), "audit.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	done := map[string]map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var entry struct {
			Job     string `json:"job"`
			Verb    string `json:"verb"`
			Allowed bool   `json:"allowed"`
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			s.t.Fatalf("%v: %s", err, lines.Text())
		}
		if done[entry.Job] == nil {
			done[entry.Job] = map[string]int{}
		}
		if entry.Allowed {
			done[entry.Job][entry.Verb]++
		}
	}
	return done
}

// sweepTasks is how many tasks the array of the site's story has.
const sweepTasks = 3

// swept: every task of an array ran to its end once, those that were moved by the
// broker's hand and under their own names, and the array as a whole was left alone.
func (s *stage) swept(h deployment, array submission, j ticks) {
	s.t.Helper()
	if got := s.status(array); got != 0 {
		s.t.Errorf("sbatch --wait of the array ended with %d, want 0", got)
	}
	done, moved := s.audit(), 0
	for n := range sweepTasks {
		task := fmt.Sprintf("%s_%d", array.id, n+1)
		r := s.record(task)
		if r["JobState"] != "COMPLETED" || r["ArrayJobId"] != array.id || !strings.HasPrefix(r["UserId"], j.user+"(") || r["Account"] != slurmcluster.BetaAccount {
			s.t.Errorf("task %s: %v", task, r)
		}
		s.whole(submission{user: j.user, name: task, id: r["JobId"]}, j, s.discards(h, task))
		if r["Restarts"] != "0" {
			moved++
			if done[task]["signal"] == 0 || done[task]["update"] == 0 {
				s.t.Errorf("task %s was restarted %s times, the audit has %v", task, r["Restarts"], done[task])
			}
		}
		if _, err := h.client.Job(s.t.Context(), task); err != nil {
			s.t.Errorf("the controller does not know task %s: %v", task, err)
		}
	}
	if moved == 0 {
		s.t.Error("no task was ever moved, so that nothing was shown")
	}
	if len(done[array.id]) > 0 {
		s.t.Errorf("the audit has %v of the whole array", done[array.id])
	}
}
