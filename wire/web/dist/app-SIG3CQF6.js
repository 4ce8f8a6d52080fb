import{sd as r}from"./chunk-UY5OSXFY.js";r();
