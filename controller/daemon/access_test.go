package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/driver"
)

// requests are one for every path of the API.
func requests(id string) []struct{ method, path, body string } {
	return []struct{ method, path, body string }{
		{"GET", "/v1/jobs", ""},
		{"POST", "/v1/jobs", `{"filename":"job.sh","source":"IyEvYmluL3NoCg=="}`},
		{"GET", "/v1/jobs/" + id, ""},
		{"GET", "/v1/explain/" + id, ""},
		{"GET", "/v1/logs/" + id, ""},
		{"POST", "/v1/off/" + id, ""},
		{"POST", "/v1/stop/" + id, ""},
		{"GET", "/v1/history", ""},
		{"GET", "/v1/knowledge", ""},
		{"GET", "/v1/observations", ""},
		{"GET", "/v1/report", ""},
		{"POST", "/v1/validate", `{"filename":"job.sh","source":"IyEvYmluL3NoCg=="}`},
		{"POST", "/v1/headstarts", "{}"},
		{"GET", "/v1/advice", ""},
		{"GET", "/v1/pauses", ""},
		{"POST", "/v1/pauses", `{"scope":"cluster"}`},
		{"DELETE", "/v1/pauses?scope=cluster", ""},
		{"GET", "/v1/searches", ""},
		{"POST", "/v1/searches", `{"filename":"job.sh","source":"IyEvYmluL3NoCg=="}`},
		{"GET", "/v1/searches/s1", ""},
		{"POST", "/v1/searches/s1/stop", ""},
		{"POST", "/v1/searches/s1/resume", ""},
	}
}

// as asks in process, as a given caller.
func as(t *testing.T, c *daemontest.Controller, who peer.Peer, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(peer.NewContext(t.Context(), who), method, path, strings.NewReader(body))
	w := httptest.NewRecorder()
	c.Daemon.Handler().ServeHTTP(w, req)
	return w
}

func TestACallerWithoutPeerCredentialsIsDenied(t *testing.T) {
	t.Parallel()
	c := daemontest.New(t, daemontest.Options{})
	server := httptest.NewServer(c.Daemon.Handler()) // TCP: the caller is unknown
	defer server.Close()
	for _, r := range requests("sim-1") {
		req, err := http.NewRequestWithContext(t.Context(), r.method, server.URL+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var p api.Problem
		err = json.NewDecoder(resp.Body).Decode(&p)
		if resp.Body.Close() != nil || err != nil || resp.StatusCode != http.StatusForbidden || p.Kind != "denied" {
			t.Errorf("%s %s: status %d, problem %+v (%v); want denied", r.method, r.path, resp.StatusCode, p, err)
		}
	}
	if jobs, err := c.Cluster.List(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("a denied submission left %+v (%v)", jobs, err)
	}
}

func TestUsersSeeAndSteerTheirOwnJobsOnly(t *testing.T) {
	t.Parallel()
	c := daemontest.New(t, daemontest.Options{})
	alice, bob, root := peer.Peer{UID: 4242, Name: "alice"}, peer.Peer{UID: 4243, Name: "bob"}, peer.Peer{Name: "root"}
	body, err := json.Marshal(api.Submission{
		Request: "r", Filename: "job.sh", Source: daemontest.Script("secret", 1000, 1, daemontest.Tuned("apply")...),
	})
	if err != nil {
		t.Fatal(err)
	}
	var job api.Job
	w := as(t, c, alice, "POST", "/v1/jobs", string(body))
	if err := json.Unmarshal(w.Body.Bytes(), &job); err != nil || w.Code != http.StatusOK || job.Owner != "alice" {
		t.Fatalf("alice submitted: %d %s", w.Code, w.Body)
	}
	for _, x := range []struct {
		name         string
		who          peer.Peer
		method, path string
		body         string
		code         int
	}{
		{"the owner sees the job", alice, "GET", "/v1/jobs/" + job.ID, "", 200},
		{"another does not", bob, "GET", "/v1/jobs/" + job.ID, "", 403},
		{"nor its story", bob, "GET", "/v1/explain/" + job.ID, "", 403},
		{"nor its output", bob, "GET", "/v1/logs/" + job.ID, "", 403},
		{"nor switches it off", bob, "POST", "/v1/off/" + job.ID, "", 403},
		{"nor stops it", bob, "POST", "/v1/stop/" + job.ID, "", 403},
		{"nor pauses it", bob, "POST", "/v1/pauses", `{"scope":"job","name":"` + job.ID + `"}`, 403},
		{"nor its owner", bob, "POST", "/v1/pauses", `{"scope":"user","name":"alice"}`, 403},
		{"nor everybody", bob, "POST", "/v1/pauses", `{"scope":"cluster"}`, 403},
		{"nor a partition", alice, "POST", "/v1/pauses", `{"scope":"partition","name":"batch"}`, 403},
		{"an offset that is no number", alice, "GET", "/v1/logs/" + job.ID + "?offset=x", "", 400},
		{"an offset below zero", alice, "GET", "/v1/logs/" + job.ID + "?offset=-1", "", 400},
		{"a submission that is not JSON", alice, "POST", "/v1/jobs", "{", 400},
		{"a pause that is not JSON", alice, "POST", "/v1/pauses", "{", 400},
		{"a method that the path does not have", alice, "PUT", "/v1/jobs", "{}", 405},
		{"a path that does not exist", alice, "GET", "/v1/nothing", "", 404},
		{"the owner pauses the job", alice, "POST", "/v1/pauses", `{"scope":"job","name":"` + job.ID + `"}`, 204},
		{"and resumes it", alice, "DELETE", "/v1/pauses?scope=job&name=" + job.ID, "", 204},
		{"and all of her jobs", alice, "POST", "/v1/pauses", `{"scope":"user","name":"alice"}`, 204},
		{"and resumes them", alice, "DELETE", "/v1/pauses?scope=user&name=alice", "", 204},
		{"root pauses her", root, "POST", "/v1/pauses", `{"scope":"user","name":"alice"}`, 204},
		{"which she does not lift", alice, "DELETE", "/v1/pauses?scope=user&name=alice", "", 403},
		{"nor make her own", alice, "POST", "/v1/pauses", `{"scope":"user","name":"alice"}`, 403},
		{"root lifts it", root, "DELETE", "/v1/pauses?scope=user&name=alice", "", 204},
		{"the owner switches it off", alice, "POST", "/v1/off/" + job.ID, "", 204},
		{"root stops it", root, "POST", "/v1/stop/" + job.ID, "", 204},
	} {
		if w := as(t, c, x.who, x.method, x.path, x.body); w.Code != x.code {
			t.Errorf("%s: status %d (%s), want %d", x.name, w.Code, w.Body, x.code)
		}
	}
	if w := as(t, c, alice, "POST", "/v1/pauses", `{"scope":"job","name":"`+job.ID+`","why":"secret"}`); w.Code != 204 {
		t.Errorf("alice pauses her job: %d", w.Code)
	}
	if w := as(t, c, alice, "GET", "/v1/pauses", ""); !strings.Contains(w.Body.String(), "secret") {
		t.Errorf("alice does not see her own pause: %s", w.Body)
	}
	for _, path := range []string{"/v1/jobs", "/v1/history", "/v1/pauses"} {
		if w := as(t, c, bob, "GET", path, ""); strings.TrimSpace(w.Body.String()) != "[]" {
			t.Errorf("bob sees at %s: %s", path, w.Body)
		}
	}
}

// failing is a scheduler that answers for no job while err is set.
type failing struct {
	driver.Driver

	err error
}

func (f *failing) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	if f.err != nil {
		return driver.Job{}, f.err
	}
	return f.Driver.Get(ctx, id)
}

func TestAPauseOfAJobIsLiftedByItsMakerAlsoWhereTheSchedulerDoesNotKnowTheJob(t *testing.T) {
	t.Parallel()
	scheduler := &failing{}
	c := daemontest.New(t, daemontest.Options{Driver: func(d driver.Driver) driver.Driver { scheduler.Driver = d; return scheduler }})
	job, err := c.Cluster.Start(t.Context(), "r", driver.Spec{Owner: "alice", Filename: "job.sh", Source: daemontest.Script("job", 1000, 1)})
	if err != nil {
		t.Fatal(err)
	}
	alice, bob, root := peer.Peer{UID: 4242, Name: "alice"}, peer.Peer{UID: 4243, Name: "bob"}, peer.Peer{Name: "root"}
	pause, lift := `{"scope":"job","name":"`+string(job.ID)+`"}`, "/v1/pauses?scope=job&name="+string(job.ID)
	for _, x := range []struct {
		name               string
		err                error
		who                peer.Peer
		method, path, body string
		code               int
	}{
		{"a job that does not exist is not paused", driver.ErrNotFound, bob, "POST", "/v1/pauses", pause, 404},
		{"whose job it is may be unknown for now", driver.ErrTransient, alice, "POST", "/v1/pauses", pause, 503},
		{"which root need not know", driver.ErrTransient, root, "POST", "/v1/pauses", pause, 204},
		{"root lifts it", driver.ErrNotFound, root, "DELETE", lift, "", 204},
		{"the owner pauses it", nil, alice, "POST", "/v1/pauses", pause, 204},
		{"another may be the owner", driver.ErrTransient, bob, "DELETE", lift, "", 503},
		{"another is not", driver.ErrNotFound, bob, "DELETE", lift, "", 403},
		{"its maker lifts it", driver.ErrNotFound, alice, "DELETE", lift, "", 204},
	} {
		scheduler.err = x.err
		if w := as(t, c, x.who, x.method, x.path, x.body); w.Code != x.code {
			t.Errorf("%s: status %d (%s), want %d", x.name, w.Code, w.Body, x.code)
		}
	}
}

func TestUsersSeeAndSteerTheirOwnSearchesOnly(t *testing.T) {
	t.Parallel()
	c := daemontest.New(t, daemontest.Options{})
	alice, bob, root := peer.Peer{UID: 4242, Name: "alice"}, peer.Peer{UID: 4243, Name: "bob"}, peer.Peer{Name: "root"}
	lines := []string{
		"#TUNE search trials=3 epochs=4 system=fixed", "#TUNE knob lr env=LR min=0.1 max=1",
		`#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'`,
	}
	submission := func(lines ...string) string {
		body, err := json.Marshal(api.Submission{Request: "s1", Filename: "job.sh", Source: daemontest.Script("secret", 4, 1, lines...)})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for _, x := range []struct {
		name         string
		who          peer.Peer
		method, path string
		body         string
		code         int
	}{
		{"a job file without a search", alice, "POST", "/v1/searches", submission(), 400},
		{"a search begins", alice, "POST", "/v1/searches", submission(lines...), 200},
		{"the same request is the same search", alice, "POST", "/v1/searches", submission(lines...), 200},
		{"not with another job file", alice, "POST", "/v1/searches", submission(append(lines, "#TUNE objective=time")...), 400},
		{"nor for another user", bob, "POST", "/v1/searches", submission(lines...), 403},
		{"the owner sees it", alice, "GET", "/v1/searches/s1", "", 200},
		{"another does not", bob, "GET", "/v1/searches/s1", "", 403},
		{"nor stops it", bob, "POST", "/v1/searches/s1/stop", "", 403},
		{"nor resumes it", bob, "POST", "/v1/searches/s1/resume", "", 403},
		{"one that does not exist", alice, "GET", "/v1/searches/s2", "", 404},
		{"what runs is not resumed", alice, "POST", "/v1/searches/s1/resume", "", 400},
		{"root stops it", root, "POST", "/v1/searches/s1/stop", "", 204},
		{"and the owner once more, which changes nothing", alice, "POST", "/v1/searches/s1/stop", "", 204},
		{"fewer trials than it has", alice, "POST", "/v1/searches/s1/resume?trials=0", "", 400},
		{"trials that are no number", alice, "POST", "/v1/searches/s1/resume?trials=x", "", 400},
	} {
		if w := as(t, c, x.who, x.method, x.path, x.body); w.Code != x.code {
			t.Errorf("%s: status %d (%s), want %d", x.name, w.Code, w.Body, x.code)
		}
	}
	for _, path := range []string{"/v1/searches", "/v1/history"} {
		if w := as(t, c, bob, "GET", path, ""); strings.TrimSpace(w.Body.String()) != "[]" {
			t.Errorf("bob sees at %s: %s", path, w.Body)
		}
		if w := as(t, c, alice, "GET", path, ""); !strings.Contains(w.Body.String(), "secret") {
			t.Errorf("alice does not see her own search at %s: %s", path, w.Body)
		}
	}
}

// forUsers is a scheduler whose users submit their jobs themselves.
type forUsers struct{ driver.Driver }

func (f forUsers) Capabilities() driver.Capabilities {
	c := f.Driver.Capabilities()
	c.UsersSubmit = true
	return c
}

func TestWhereUsersSubmitAGoodJobFileIsHandedBackAndABadOneRefused(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{Driver: func(d driver.Driver) driver.Driver { return forUsers{d} }})
	good := daemontest.Script("job", 10, 1, daemontest.Tuned("apply")...)
	if _, err := c.Client.Submit(t.Context(), api.Submission{Filename: "job.sh", Source: good}); !errors.Is(err, api.ErrUsersSubmit) {
		t.Errorf("a good file: %v, want %v", err, api.ErrUsersSubmit)
	}
	bad := daemontest.Script("job", 10, 1, "#TUNE mod=apply")
	if _, err := c.Client.Submit(t.Context(), api.Submission{Filename: "job.sh", Source: bad}); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("a bad file: %v, want %v", err, api.ErrInvalid)
	}
	if jobs, err := c.Cluster.List(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("jobs %+v (%v), want none", jobs, err)
	}
}

func TestTheRequestIDsOfTwoUsersNeverMeet(t *testing.T) {
	t.Parallel()
	c := daemontest.New(t, daemontest.Options{})
	var ids [2]string
	for i, name := range []string{"alice", "bob"} {
		body, err := json.Marshal(api.Submission{Request: "same", Filename: "job.sh", Source: daemontest.Script("job", 1000, 1)})
		if err != nil {
			t.Fatal(err)
		}
		var job api.Job
		w := as(t, c, peer.Peer{UID: uint32(4242 + i), Name: name}, "POST", "/v1/jobs", string(body))
		if err := json.Unmarshal(w.Body.Bytes(), &job); err != nil || job.Owner != name {
			t.Fatalf("%s got %s (%v)", name, w.Body, err)
		}
		ids[i] = job.ID
	}
	if ids[0] == ids[1] {
		t.Errorf("both users got the job %s", ids[0])
	}
}
