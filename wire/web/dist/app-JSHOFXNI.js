import{sd as r}from"./chunk-ZU5UPSDA.js";r();
