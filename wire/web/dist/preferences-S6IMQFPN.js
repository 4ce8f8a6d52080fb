import{a as o}from"./chunk-B2MNS6WH.js";import"./chunk-QDAYF5J5.js";import"./chunk-WVZKNENU.js";export{o as Preferences};
