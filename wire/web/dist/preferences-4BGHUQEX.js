import{a as o}from"./chunk-3NCU5EC3.js";import"./chunk-PFR6XGJH.js";import"./chunk-74IXTQGT.js";export{o as Preferences};
