import{ab as r}from"./chunk-4CJ3LAC6.js";r();
