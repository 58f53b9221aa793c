package nomadserver_test

import (
	"bufio"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"go.uber.org/goleak"

	"pitchpipe/test/nomadserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o nomadserver.Options) (*nomadserver.Server, *api.Client) {
	t.Helper()
	s, err := nomadserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := api.NewClient(&api.Config{Address: s.Addr(), HttpClient: client})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func register(t *testing.T, c *api.Client, id, script string) {
	t.Helper()
	job := api.NewBatchJob(id, id, "global", 50)
	task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sh").SetConfig("args", []string{"-c", script})
	job.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
	if _, _, err := c.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
}

// await follows the job's allocation until it has a status.
func await(t *testing.T, c *api.Client, id, status string) *api.AllocationListStub {
	t.Helper()
	q := &api.QueryOptions{WaitTime: time.Minute}
	for {
		list, meta, err := c.Jobs().Allocations(id, true, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 && list[0].ClientStatus == status {
			return list[0]
		}
		if len(list) == 1 && (list[0].ClientStatus == "failed" || list[0].ClientStatus == "complete") {
			t.Fatalf("the allocation is %s", list[0].ClientStatus)
		}
		q.WaitIndex = meta.LastIndex
	}
}

func TestABatchJobRunsToItsEnd(t *testing.T) {
	t.Parallel()
	_, c := start(t, nomadserver.Options{})
	register(t, c, "short", "sleep 0.2")
	await(t, c, "short", "complete")
	j, _, err := c.Jobs().Info("short", nil)
	if err != nil {
		t.Fatal(err)
	}
	if *j.Status != "dead" {
		t.Errorf("the job is %s", *j.Status)
	}
}

func TestAfterARestartEverythingIsThereAndTasksHaveGoneOn(t *testing.T) {
	t.Parallel()
	s, c := start(t, nomadserver.Options{})
	gate := t.TempDir() + "/go"
	register(t, c, "long", "while [ ! -e "+gate+" ]; do sleep 0.05; done")
	before := await(t, c, "long", "running")
	addr := s.Addr()
	s.Down()
	if _, _, err := c.Jobs().Info("long", nil); err == nil {
		t.Error("it answers while it is down")
	}
	if err := s.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr {
		t.Errorf("the address is %s after %s", s.Addr(), addr)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if after := await(t, c, "long", "complete"); after.ID != before.ID {
		t.Error("it is another allocation")
	}
}

func TestACutEndsStreamsWithoutAWord(t *testing.T) {
	t.Parallel()
	s, c := start(t, nomadserver.Options{})
	register(t, c, "short", "true")
	await(t, c, "short", "complete")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Addr()+"/v1/event/stream?topic=*", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	lines := 0
	for in.Scan() {
		if !strings.HasPrefix(in.Text(), "{") {
			t.Errorf("a line is %q", in.Text())
		}
		if lines++; lines == 1 {
			s.CutStreams()
		}
	}
	if in.Err() != nil || lines == 0 {
		t.Errorf("%d lines, then %v", lines, in.Err())
	}
}

func TestCloseEndsTasksAndRemovesItsFolder(t *testing.T) {
	t.Parallel()
	s, c := start(t, nomadserver.Options{})
	register(t, c, "long", "exec sleep 1000")
	a := await(t, c, "long", "running")
	n, _, err := c.Nodes().Info(a.NodeID, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := n.Attributes["unique.storage.volume"]
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestManyJobsAtOnceAllEnd(t *testing.T) {
	t.Parallel()
	_, c := start(t, nomadserver.Options{Cores: 2})
	names := strings.Fields("a b c d e f g h i j k l m n o p q r s t")
	for _, id := range names {
		register(t, c, id, "true")
	}
	for _, id := range names {
		await(t, c, id, "complete")
	}
}
