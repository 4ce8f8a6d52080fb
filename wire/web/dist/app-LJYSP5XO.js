import{db as r}from"./chunk-HGMUO3WK.js";r();
