import{db as r}from"./chunk-6V66L52X.js";r();
