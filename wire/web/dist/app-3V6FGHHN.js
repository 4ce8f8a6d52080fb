import{sd as r}from"./chunk-WVZKNENU.js";r();
