import{a as o,b as r}from"./chunk-57LI2Y7U.js";import"./chunk-UY5OSXFY.js";export{r as Uploads,o as fileSize};
