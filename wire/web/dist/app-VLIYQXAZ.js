import{ab as r}from"./chunk-UIWQWYHT.js";r();
