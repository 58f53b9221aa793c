// Package facts says in sentences how Nomad behaves where a tuning controller depends
// on it, and holds both to them: the server of package nomadserver, and a real agent
// where one is on PATH.
//
// In comes an agent of either kind; out come tests named like the sentences. Where the
// two differ the real agent is right. The package has nothing but tests.
package facts
