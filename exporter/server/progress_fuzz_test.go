package server_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/server"
	"pitchpipe/exporter/window"
)

// FuzzProgress sends what any process of a job may send to the report socket: a body and
// headers of any kind.
func FuzzProgress(f *testing.F) {
	f.Add("Content-Type: application/json", `{"epoch":3,"total":9,"loss":0.5}`)
	f.Add("Content-Type: text/plain\r\nExpect: 100-continue", "epoch=3 total=9 loss=0.5")
	f.Add("Transfer-Encoding: chunked", "8\r\nsaved=1\n\r\n0\r\n\r\n")
	f.Add("Content-Length: -1\r\nContent-Encoding: gzip", `{"saved":true,"time":"9999-12-31T23:59:59Z"}`)
	f.Add("", "epoch="+strings.Repeat("1", 5000))
	f.Fuzz(func(t *testing.T, headers, body string) {
		if !strings.Contains(headers, "Transfer-Encoding") && !strings.Contains(headers, "Content-Length") {
			headers = "Content-Length: " + strconv.Itoa(len(body)) + "\r\n" + headers
		}
		text := "POST " + api.PathProgress + " HTTP/1.1\r\nHost: exporter\r\n" + strings.TrimRight(headers, "\r\n") + "\r\n\r\n" + body
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return // as the server's own reading refuses it
		}
		m := &marker{}
		s, err := server.New(server.Config{Socket: "unused"}, static(api.Node{}), window.New(window.Config{}), m, http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, req.WithContext(s.As(t.Context(), 1000)))
		took := rec.Code == http.StatusNoContent
		refused := []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge}
		if took != (len(m.got) == 1) || !took && !slices.Contains(refused, rec.Code) {
			t.Fatalf("status %d, and %d reports passed on", rec.Code, len(m.got))
		}
		if took && (m.who.UID != 1000 || !m.got[0].Saved && !m.got[0].Begins && m.got[0].Epoch < 1) {
			t.Errorf("passed on %+v by %+v", m.got[0], m.who)
		}
	})
}
