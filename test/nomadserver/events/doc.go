// Package events keeps the latest events of a cluster and gives them to subscribers.
//
// In come batches with rising indexes; out come subscriptions that see them in order.
// The number of batches kept is bounded: a subscriber who falls behind by more is ended
// without a word, as Nomad does, and has to subscribe anew. It knows neither HTTP nor
// what an event is about beyond its topic, namespace and keys.
package events
