package daemon_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/driver"
	"pitchpipe/exporter/api/peercred/peercredtest"
)

// Others who take all connections that they get, idle or slow, do not lock out the owner of
// a job or the operator, over the socket or the metrics' address. It does not run in
// parallel, since it holds each answer to a time.
func TestOwnersAndOperatorsGetInBesideACrowd(t *testing.T) {
	const owner, ownerName = 64101, "64101"
	socket, address := filepath.Join(peercredtest.Dir(t), "s"), freeAddress(t)
	c := daemontest.Start(t, daemontest.Options{Socket: socket, Listen: address})
	source := daemontest.Script("x", 1000, 60, daemontest.Tuned("apply")...)
	job, err := c.Cluster.Start(t.Context(), "r", driver.Spec{Owner: ownerName, Filename: "job.sh", Source: source})
	if err != nil {
		t.Fatal(err)
	}
	// More than there is room for, so that the owner gets in only once he is known.
	others := []uint32{64111, 64112, 64113, 64114, 64115, 64116, 64117, 64118}
	onSocket := peercredtest.Surround(t, "unix", socket, 63, 25, others...)
	onTCP := peercredtest.Surround(t, "tcp", address, 125, 50, others[:4]...)
	onSocket.Settle(t, 448)
	onTCP.Settle(t, 48)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var err error
		peercredtest.As(t, owner, func() { _, _, err = peercredtest.Ask("unix", socket, http.MethodGet, "/v1/jobs", "", time.Second) })
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the owner of a job is kept out: %v", err)
		}
	}
	for range 3 {
		for _, uid := range []uint32{owner, 0} {
			if text := peercredtest.Answers(t, uid, "unix", socket, http.MethodGet, "/v1/jobs", http.StatusOK); !strings.Contains(text, string(job.ID)) {
				t.Errorf("status of user %d: %s", uid, text)
			}
			peercredtest.Answers(t, uid, "unix", socket, http.MethodPost, "/v1/off/"+string(job.ID), http.StatusNoContent)
		}
		peercredtest.Answers(t, 0, "tcp", address, http.MethodGet, "/metrics", http.StatusOK)
	}
}
