package facts_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestWatching(t *testing.T) {
	hold(t, nomadagent.Options{EventBuffer: 40}, []fact{
		{"a blocking query comes back at the change, with a higher index", blockingJob, both},
		{"a blocking query without a change comes back after its time with the same index", blockingTimeout, both},
		{"the list of jobs wakes when a job ends", blockingList, both},
		{"allocations, evaluations and the summary of a job wake when they change", blockingParts, both},
		{"a query of a job that is not there waits for it", blockingAbsent, both},
		{"the stream shows the life of a job in this order", streamOrder, realAgent},
		{"events of allocations and evaluations are found by the job, and hold no job", streamByJob, realAgent},
		{"the stream resumes at an index, and that one comes again", streamResumes, realAgent},
		{"an index too old begins at the oldest held, a future one at the newest", streamIndexes, realAgent},
		{"an unknown topic is taken and shows nothing", streamUnknown, realAgent},
		{"a burst beyond the buffer ends the stream without an error line", streamBurst, realAgent},
		{"logs are texts from a place on, and none of another task", logTexts, both},
		{"logs are frames unless plain texts are asked for", logFrames, realAgent},
		{"a followed log does not end with its task", followedLog, both},
		{"files of an allocation can be listed and read", files, both},
		{"statistics name the processes of a task, where allocation metrics are published", stats, realAgent},
		{"what does not exist is 404, and a name that is no UUID is 500", missing, both},
		{"other parts of what does not exist are 404 or empty", missingParts, realAgent},
	})
}

// wait runs a blocking query in the background.
func wait[T any](query func() (T, *api.QueryMeta, error)) chan error {
	done := make(chan error, 1)
	go func() {
		_, _, err := query()
		done <- err
	}()
	return done
}

func blockingJob(t *testing.T, c cluster) {
	j := c.job(lasting)
	c.runs(t, j)
	c.awaitStatus(t, "running")
	_, meta, err := c.Jobs().Info(c.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := wait(func() (*api.Job, *api.QueryMeta, error) {
		now, m, err := c.Jobs().Info(c.id, &api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: patience})
		if err == nil && (m.LastIndex <= meta.LastIndex || *now.Priority != 60) {
			err = fmt.Errorf("index %d after %d, priority %d", m.LastIndex, meta.LastIndex, *now.Priority)
		}
		return now, m, err
	})
	j.Priority = new(60)
	c.register(t, j)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func blockingTimeout(t *testing.T, c cluster) {
	j := c.job("true")
	j.TaskGroups[0].Count = new(0)
	reg := c.register(t, j)
	c.awaitEval(t, reg.EvalID)
	c.awaitStatus(t, "dead")
	_, meta, err := c.Jobs().Info(c.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, after, err := c.Jobs().Info(c.id, &api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if after.LastIndex != meta.LastIndex || time.Since(start) < 500*time.Millisecond {
		t.Errorf("index %d after %d, in %v", after.LastIndex, meta.LastIndex, time.Since(start))
	}
}

func blockingList(t *testing.T, c cluster) {
	c.register(t, c.job("sleep 0.5"))
	var index uint64
	await(t, "the list to show the end", func() error {
		list, meta, err := c.Jobs().List(&api.QueryOptions{Prefix: c.id, WaitIndex: index, WaitTime: patience})
		if err != nil {
			return err
		}
		if meta.LastIndex < index {
			t.Errorf("the index went back from %d to %d", index, meta.LastIndex)
		}
		index = meta.LastIndex
		if len(list) != 1 || list[0].Status != "dead" {
			return errors.New("not yet")
		}
		return nil
	})
}

func blockingParts(t *testing.T, c cluster) {
	j := c.job(lasting)
	c.runs(t, j)
	c.awaitStatus(t, "running")
	_, allocs, err := c.Jobs().Allocations(c.id, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, evals, err := c.Jobs().Evaluations(c.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, sum, err := c.Jobs().Summary(c.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := func(m *api.QueryMeta) *api.QueryOptions {
		return &api.QueryOptions{WaitIndex: m.LastIndex, WaitTime: patience}
	}
	a := wait(func() ([]*api.AllocationListStub, *api.QueryMeta, error) {
		return c.Jobs().Allocations(c.id, true, at(allocs))
	})
	e := wait(func() ([]*api.Evaluation, *api.QueryMeta, error) { return c.Jobs().Evaluations(c.id, at(evals)) })
	s := wait(func() (*api.JobSummary, *api.QueryMeta, error) { return c.Jobs().Summary(c.id, at(sum)) })
	task(j).Env = map[string]string{"A": "1"}
	c.register(t, j)
	for name, done := range map[string]chan error{"allocations": a, "evaluations": e, "summary": s} {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func blockingAbsent(t *testing.T, c cluster) {
	o := c.other(t, "first")
	o.register(t, o.job("true"))
	resp := c.get(t, "/v1/jobs")
	index := resp.Header.Get("X-Nomad-Index")
	answered := make(chan int, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.addr+"/v1/job/"+c.id+"?wait=2m&index="+index+"0", nil)
		if err != nil {
			answered <- 0
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			answered <- 0
			return
		}
		_ = resp.Body.Close()
		answered <- resp.StatusCode
	}()
	select {
	case code := <-answered:
		if code != http.StatusNotFound {
			t.Errorf("it was answered with %d", code)
		}
	case <-time.After(300 * time.Millisecond):
	}
}

// stream reads batches of events.
type stream struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Reader
}

func (c cluster) stream(t *testing.T, query string) *stream {
	t.Helper()
	resp := c.get(t, "/v1/event/stream?"+query)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream is %d", resp.StatusCode)
	}
	return &stream{t: t, body: resp.Body, in: bufio.NewReader(resp.Body)}
}

// news is a stream from here on. One without an index begins at the oldest event that is
// held, which any other story's next event may drop: then it ends before anything was read.
func (c cluster) news(t *testing.T, topics string) *stream {
	t.Helper()
	return c.stream(t, topics+"&index="+c.get(t, "/v1/jobs").Header.Get("X-Nomad-Index"))
}

// oldest is the first batch of a stream that begins at the oldest event held.
func (c cluster) oldest(t *testing.T, query string) api.Events {
	t.Helper()
	var b api.Events
	err := io.EOF
	for range 20 {
		if b, err = c.stream(t, query).next(); !errors.Is(err, io.EOF) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// next is the next batch that is not a heartbeat; io.EOF at the end.
func (s *stream) next() (api.Events, error) {
	for {
		line, err := s.in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var b api.Events
			if err := json.Unmarshal(line, &b); err != nil {
				return b, fmt.Errorf("%q: %w", line, err)
			}
			if !b.IsHeartbeat() {
				return b, nil
			}
		}
		if err != nil {
			return api.Events{}, err
		}
	}
}

// until reads batches until one satisfies; it returns all.
func (s *stream) until(enough func(api.Event) bool) []api.Event {
	s.t.Helper()
	var out []api.Event
	for {
		b, err := s.next()
		if err != nil {
			s.t.Fatalf("the stream ended after %d events: %v", len(out), err)
		}
		out = append(out, b.Events...)
		if slices.ContainsFunc(b.Events, enough) {
			return out
		}
	}
}

func clientStatus(e api.Event) string {
	a, err := e.Allocation()
	if err != nil || a == nil {
		return ""
	}
	return a.ClientStatus
}

func streamOrder(t *testing.T, c cluster) {
	s := c.news(t, "topic=Job:"+c.id+"&topic=Allocation:"+c.id+"&topic=Evaluation:"+c.id)
	c.register(t, c.job("sleep 0.3"))
	events := s.until(func(e api.Event) bool { return clientStatus(e) == "complete" })
	var kinds []string
	for _, e := range events {
		k := string(e.Topic) + " " + e.Type
		if len(kinds) == 0 || kinds[len(kinds)-1] != k {
			kinds = append(kinds, k)
		}
	}
	// Between those there are more; these come in this order.
	for _, want := range []string{
		"Job JobRegistered", "Evaluation JobRegistered", "Allocation PlanResult", "Evaluation EvaluationUpdated", "Allocation AllocationUpdated",
	} {
		if !slices.Contains(kinds, want) {
			t.Errorf("%s did not come: %v", want, kinds)
		}
	}
	if kinds[0] != "Job JobRegistered" {
		t.Errorf("the first is %s", kinds[0])
	}
	var last uint64
	for _, e := range events {
		if e.Index < last {
			t.Errorf("index %d after %d", e.Index, last)
		}
		last = e.Index
	}
}

func streamByJob(t *testing.T, c cluster) {
	s := c.news(t, "topic=Allocation:"+c.id+"&topic=Evaluation:"+c.id)
	o := c.other(t, "other")
	o.register(t, o.job("true"))
	o.awaitAllocs(t, "complete")
	c.register(t, c.job("true"))
	for _, e := range s.until(func(e api.Event) bool { return clientStatus(e) == "complete" }) {
		switch e.Topic {
		case "Allocation":
			a, err := e.Allocation()
			if err != nil {
				t.Fatal(err)
			}
			if a.JobID != c.id || a.Job != nil || a.ID != e.Key {
				t.Errorf("an allocation of %s, with a job: %t", a.JobID, a.Job != nil)
			}
		case "Evaluation":
			ev, err := e.Evaluation()
			if err != nil {
				t.Fatal(err)
			}
			if ev.JobID != c.id {
				t.Errorf("an evaluation of %s", ev.JobID)
			}
		default:
			t.Errorf("topic %s", e.Topic)
		}
	}
}

func streamResumes(t *testing.T, c cluster) {
	s := c.news(t, "topic=Job:"+c.id)
	c.register(t, c.job("true"))
	all := s.until(func(e api.Event) bool {
		j, err := e.Job()
		return err == nil && *j.Status == "dead"
	})
	if len(all) < 2 {
		t.Fatalf("there are %d events", len(all))
	}
	from := all[len(all)-1].Index
	b, err := c.stream(t, fmt.Sprintf("topic=Job:%s&index=%d", c.id, from)).next()
	if err != nil || b.Index != from {
		t.Errorf("resumed at %d, %v, want %d", b.Index, err, from)
	}
}

func streamIndexes(t *testing.T, c cluster) {
	j := c.job("true")
	j.TaskGroups[0].Count = new(0)
	var last uint64
	for i := range 20 {
		j.Priority = new(10 + i)
		last = c.awaitEval(t, c.register(t, j).EvalID).ModifyIndex
	}
	if b := c.oldest(t, "topic=*&index=1"); b.Index <= 1 {
		t.Errorf("the oldest is %d", b.Index)
	}
	f, err := c.stream(t, "topic=*&index=99999999").next()
	if err != nil || f.Index < last || f.Index > 99999 {
		t.Errorf("the newest is %d, %v, want at least %d", f.Index, err, last)
	}
}

func streamUnknown(t *testing.T, c cluster) {
	resp := c.get(t, "/v1/event/stream?topic=Nonsense")
	if resp.StatusCode != http.StatusOK {
		t.Errorf("it is %d", resp.StatusCode)
	}
	resp = c.get(t, "/v1/event/stream?index=x")
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an index that is none is %d", resp.StatusCode)
	}
}

// streamBurst overruns a reader who reads nothing until everything has happened.
func streamBurst(t *testing.T, c cluster) {
	s := c.news(t, "topic=*")
	if _, err := s.next(); err != nil {
		t.Fatal(err)
	}
	j := c.job("true")
	j.TaskGroups[0].Count = new(0)
	j.Meta = map[string]string{"weight": strings.Repeat("x", 200_000)} // so that no socket holds it all
	for i := range 60 {
		j.Priority = new(1 + i)
		c.register(t, j)
	}
	for range 2000 {
		_, err := s.next()
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("it ended with %v, want EOF", err)
		}
		return
	}
	t.Error("the stream did not end")
}

func logTexts(t *testing.T, c cluster) {
	c.register(t, c.job("echo one; echo two >&2; echo three"))
	id := c.awaitAllocs(t, "complete")[0].ID
	c.output(t, id, "one\nthree\n")
	for query, want := range map[string]string{
		"type=stderr": "two\n", "type=stdout&offset=4": "three\n", "type=stdout&origin=end&offset=6": "three\n",
	} {
		if got := bodyOf(t, c.get(t, "/v1/client/fs/logs/"+id+"?task=t&plain=true&"+query)); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]int{"task=zz&type=stdout": 400, "task=t&type=both": 400, "task=t&type=stdout&origin=middle": 400} {
		if got := c.get(t, "/v1/client/fs/logs/"+id+"?"+query).StatusCode; got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}

func logFrames(t *testing.T, c cluster) {
	c.register(t, c.job("echo one; echo three"))
	id := c.awaitAllocs(t, "complete")[0].ID
	c.output(t, id, "one\nthree\n")
	frames := bodyOf(t, c.get(t, "/v1/client/fs/logs/"+id+"?task=t&type=stdout"))
	var f api.StreamFrame
	if err := json.Unmarshal([]byte(frames), &f); err != nil {
		t.Fatalf("%q: %v", frames, err)
	}
	if string(f.Data) != "one\nthree\n" || f.File != "alloc/logs/t.stdout.0" || f.Offset != 10 {
		t.Errorf("%q of %s at %d", f.Data, f.File, f.Offset)
	}
}

func followedLog(t *testing.T, c cluster) {
	c.register(t, c.job("echo one"))
	a := c.awaitAllocs(t, "complete")[0]
	c.awaitStatus(t, "dead")
	resp := c.get(t, "/v1/client/fs/logs/"+a.ID+"?task=t&type=stdout&plain=true&follow=true")
	text := make([]byte, len("one\n"))
	if _, err := io.ReadFull(resp.Body, text); err != nil || string(text) != "one\n" {
		t.Fatalf("%q, %v", text, err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := resp.Body.Read(make([]byte, 1))
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Errorf("it ended: %v", err)
	case <-time.After(time.Second):
	}
}

func files(t *testing.T, c cluster) {
	a := c.alloc(t, c.runs(t, c.job(`echo -n saved > "$NOMAD_TASK_DIR/a.txt"; echo -n shared > "$NOMAD_ALLOC_DIR/data/b.txt"; `+lasting)).ID)
	read := func(path string) string {
		return bodyOf(t, c.get(t, "/v1/client/fs/cat/"+a.ID+"?path="+path))
	}
	await(t, "the file", func() error {
		if got := read("t/local/a.txt"); got != "saved" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	await(t, "the shared file", func() error {
		if got := read("alloc/data/b.txt"); got != "shared" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	if got := bodyOf(t, c.get(t, "/v1/client/fs/readat/"+a.ID+"?path=t/local/a.txt&offset=1&limit=2")); got != "av" {
		t.Errorf("a part is %q", got)
	}
	list, _, err := c.AllocFS().List(a, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	if slices.Sort(names); strings.Join(names, " ") != "alloc t" {
		t.Errorf("the folder holds %v", names)
	}
	st, _, err := c.AllocFS().Stat(a, "t/local/a.txt", nil)
	if err != nil || st.Size != 5 || st.IsDir {
		t.Errorf("%+v, %v", st, err)
	}
	_, _, err = c.AllocFS().Stat(a, "t/local/none", nil)
	refused(t, err, 404, "no such file or directory")
	// A file that is not there is an answer like any other.
	for _, kind := range []string{"cat", "readat"} {
		resp := c.get(t, "/v1/client/fs/"+kind+"/"+a.ID+"?path=t/local/none&offset=0&limit=9")
		if text := bodyOf(t, resp); resp.StatusCode != 200 || !strings.Contains(text, "no such file or directory") {
			t.Errorf("%s: %d %q", kind, resp.StatusCode, text)
		}
	}
}

// stats shows nothing on an agent whose telemetry has publish_allocation_metrics off,
// as it is unless the agent runs with -dev.
func stats(t *testing.T, c cluster) {
	a := c.alloc(t, c.runs(t, c.job(lasting)).ID)
	config := bodyOf(t, c.get(t, "/v1/agent/self"))
	await(t, "the processes", func() error {
		s, err := c.Allocations().Stats(a, nil)
		switch {
		case err != nil:
			return err
		case strings.Contains(config, `"PublishAllocationMetrics":false`) && len(s.Tasks) == 0:
			return nil
		case s.Tasks["t"] == nil || len(s.Tasks["t"].Pids) == 0:
			return fmt.Errorf("there are none of %d tasks", len(s.Tasks))
		}
		return nil
	})
}

func missing(t *testing.T, c cluster) {
	const none = "14997b55-0f7c-4638-84d1-6aab7ebc82a8"
	c.answers(t, map[string]string{
		"/v1/job/" + c.id:                           "404 job not found",
		"/v1/job/" + c.id + "/summary":              "404 job not found",
		"/v1/job/" + c.id + "/allocations":          "200 []",
		"/v1/job/" + c.id + "/evaluations":          "200 []",
		"/v1/job/" + c.id + "/versions":             "404 job versions not found",
		"/v1/job/" + c.id + "/submission?version=0": "404 job source not found",
		"/v1/allocation/" + none:                    "404 alloc not found",
		"/v1/allocation/abc":                        "500 alloc lookup failed: index error: UUID must be 36 characters",
		"/v1/evaluation/" + none:                    "404 eval not found",
		"/v1/node/" + none:                          "404 node not found",
		"/v1/jobs?index=abc":                        "400 Invalid index",
		"/v1/jobs?wait=abc":                         "400 Invalid wait time",
	})
}

func missingParts(t *testing.T, c cluster) {
	c.answers(t, map[string]string{
		"/v1/job/" + c.id + "/scale":                                       "404 job not found",
		"/v1/job/" + c.id + "/deployments":                                 "200 []",
		"/v1/job/" + c.id + "/deployment":                                  "200 null",
		"/v1/scaling/policy/none":                                          "404 policy not found",
		"/v1/namespace/none":                                               "404 Namespace not found",
		"/v1/client/allocation/14997b55-0f7c-4638-84d1-6aab7ebc82a8/stats": `404 Unknown allocation "14997b55-0f7c-4638-84d1-6aab7ebc82a8"`,
	})
}

func (c cluster) answers(t *testing.T, wanted map[string]string) {
	t.Helper()
	for path, want := range wanted {
		resp := c.get(t, path)
		if got := fmt.Sprintf("%d %s", resp.StatusCode, bodyOf(t, resp)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
