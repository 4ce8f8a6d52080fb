import{a as o,b as r}from"./chunk-FJ55F2T4.js";import"./chunk-M7KWKQGM.js";import"./chunk-UY5OSXFY.js";export{r as NotificationFields,o as Notifications};
